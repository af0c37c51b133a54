/* The rating page with JavaScript: keys, what is told while something is sent, time at work, what was typed.
   Everything it does is there without it too: the buttons are those of plain forms. */
"use strict";

(() => {
  const root = document.getElementById("judging");
  if (!root) return;

  const RETRIES_MS = [1000, 2000, 4000, 8000, 15000];
  const SLOW_MS = 400; // a reply that takes longer is announced
  const SETTLE_MS = 300; // in quick mode a new item takes no rating before it can have been seen
  const IDLE_MS = 60000;
  const BEAT_MS = 15000;
  const WARNING_S = 300;
  const MARK = "curate-draft ";

  const byId = (id) => document.getElementById(id);
  const turn = () => byId("turn");
  const form = () => byId("rating");
  const key = () => (turn() ? turn().dataset.item : "");
  const post = (path, fields) =>
    fetch(root.dataset.path + path, {
      method: "POST", body: new URLSearchParams(fields), headers: { Accept: "text/html" }, keepalive: true, redirect: "manual",
    });

  /* --- what is told --- */

  const say = (words) => { byId("said").textContent = words; };

  /* --- drafts: what was chosen and typed, in this window until it is stored --- */

  const kept = {
    read(name) { try { return JSON.parse(sessionStorage.getItem(MARK + name)); } catch { return null; } },
    write(name, value) { try { sessionStorage.setItem(MARK + name, JSON.stringify(value)); } catch { /* no room: the page itself still holds it */ } },
    drop(name) { try { sessionStorage.removeItem(MARK + name); } catch { /* nothing was kept */ } },
  };

  const keepDraft = () => {
    if (!form() || !key()) return;
    const chosen = form().querySelector("input[name=rating]:checked");
    kept.write(key(), { rating: chosen ? chosen.value : null, comment: form().elements.comment.value, submission: form().elements.submission.value });
  };

  const restoreDraft = () => {
    const draft = form() && key() ? kept.read(key()) : null;
    if (!draft) return;
    const comment = form().elements.comment;
    if (draft.comment && !comment.value) {
      comment.value = draft.comment;
      comment.closest("details").open = true;
    }
    const choice = form().querySelector(`input[name=rating][value="${draft.rating}"]`);
    if (choice) choice.checked = true;
    if (draft.submission) form().elements.submission.value = draft.submission;
  };

  let saving = 0;
  const saveComment = () => {
    const comment = form() && form().elements.comment;
    if (!comment || comment.value === comment.dataset.saved) return;
    const words = comment.value;
    post("/comment", { item: key(), comment: words }).then((reply) => { if (reply.ok) comment.dataset.saved = words; }, () => {});
  };

  root.addEventListener("input", (event) => {
    keepDraft();
    if (event.target.name !== "comment") return;
    clearTimeout(saving);
    saving = setTimeout(saveComment, 1500);
  });

  /* --- sending: once, told truthfully, tried again under the same key --- */

  let shownAt = -SETTLE_MS; // the first item may be rated at once
  let sending = null; // {form, button, tries, again, item}
  let slow = 0;

  const own = (event) => {
    const source = event.detail && event.detail.elt;
    return source instanceof HTMLFormElement && root.contains(source) ? source : null;
  };

  root.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=submit], button:not([type])");
    // The second click of a double click would rate what the first one brought.
    if (button && button.closest("#turn") && event.detail > 1) event.preventDefault();
  });

  root.addEventListener("submit", (event) => {
    const atOnce = event.submitter && ["fail", "unclear", "pass"].includes(event.submitter.value);
    if (atOnce && performance.now() - shownAt < SETTLE_MS) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, true);

  root.addEventListener("htmx:beforeRequest", (event) => {
    const source = own(event);
    if (!source) return;
    keepDraft();
    if (!sending || sending.form !== source) {
      const submitted = event.detail.requestConfig && event.detail.requestConfig.triggeringEvent;
      sending = { form: source, button: submitted ? submitted.submitter : null, tries: 0, item: key() };
    }
    clearTimeout(sending.again);
    clearTimeout(slow);
    slow = setTimeout(() => say(source.id === "rating" ? "Saving … not saved yet." : "One moment …"), SLOW_MS);
  });

  root.addEventListener("htmx:afterRequest", () => clearTimeout(slow));

  const tryAgain = (why) => {
    if (!sending) return;
    const wait = RETRIES_MS[Math.min(sending.tries, RETRIES_MS.length - 1)];
    sending.tries += 1;
    say(`Not saved yet: ${why} What you chose and typed is kept here and is sent again by itself.`);
    clearTimeout(sending.again);
    sending.again = setTimeout(sendAgain, wait);
  };

  const sendAgain = () => {
    if (!sending || !sending.form.isConnected) return;
    shownAt = -SETTLE_MS;
    if (sending.button && sending.button.isConnected) sending.form.requestSubmit(sending.button);
    else sending.form.requestSubmit();
  };

  root.addEventListener("htmx:sendError", (event) => { if (own(event)) tryAgain(navigator.onLine ? "the site does not answer." : "there is no connection."); });
  root.addEventListener("htmx:timeout", (event) => { if (own(event)) tryAgain("the site does not answer."); });
  root.addEventListener("htmx:responseError", (event) => {
    if (!own(event)) return;
    const status = event.detail.xhr.status;
    if (status >= 500 || status === 429) { tryAgain("the site cannot store anything just now."); return; }
    sending = null;
    if (status !== 401) say("Not saved. What happened stands above; what you typed is still here.");
  });
  window.addEventListener("online", () => { if (sending && sending.tries) { clearTimeout(sending.again); sendAgain(); } });
  window.addEventListener("offline", () => say("There is no connection. You can go on reading; what you send is kept here until there is one."));

  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "turn" && event.detail.target.id !== "notices") return;
    clearTimeout(slow);
    if (event.detail.target.id === "notices") { byId("notices").scrollIntoView({ block: "nearest" }); return; }
    if (sending && sending.item !== key()) kept.drop(sending.item);
    sending = null;
    byId("notices").replaceChildren();
    settle();
    const item = byId("item") || turn();
    if (item) item.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });

  const settle = () => {
    shownAt = performance.now();
    restoreDraft();
  };

  /* --- keys --- */

  const inText = (node) => node instanceof Element && node.closest("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])");
  const press = (name) => { const button = root.querySelector(`[data-key="${name}"]:not([hidden])`); if (button) button.click(); return Boolean(button); };

  const choose = (name) => {
    const target = root.querySelector(`#rating [data-key="${name}"]`);
    if (!target) return false;
    if (target.type === "radio") {
      target.checked = true;
      target.focus();
      target.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (performance.now() - shownAt >= SETTLE_MS) target.click();
    return true;
  };

  const writeComment = () => {
    const comment = form() && form().elements.comment;
    if (!comment) return false;
    comment.closest("details").open = true;
    comment.focus();
    return true;
  };

  const KEYS = {
    f: () => choose("f"), u: () => choose("u"), p: () => choose("p"),
    z: () => press("z"), l: () => press("l"), d: () => press("d"), n: () => press("n"),
    c: writeComment,
    g: () => openDialog("instructions"), "?": () => openDialog("keys"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && inText(event.target) && root.contains(event.target)) { (byId("item") || root).focus(); return; }
    if (root.dataset.shortcuts !== "on" || event.repeat || event.isComposing) return;
    if (event.ctrlKey || event.altKey || event.metaKey || inText(event.target) || document.querySelector("dialog[open]")) return;
    const deed = KEYS[event.key.toLowerCase()];
    if (!deed || (sending && !"cg?".includes(event.key.toLowerCase()))) return;
    if (deed()) event.preventDefault();
  });

  /* --- instructions and keys beside the item instead of on pages of their own --- */

  const openDialog = (name) => {
    const dialog = byId(name);
    if (!dialog) return false;
    dialog.showModal();
    return true;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && openDialog(link.dataset.dialog)) event.preventDefault();
  });

  /* --- time at work: the server counts between beats; hidden or idle is not at work --- */

  let touchedAt = performance.now();
  for (const sign of ["keydown", "pointerdown", "pointermove", "scroll", "wheel", "touchstart"]) {
    document.addEventListener(sign, () => { touchedAt = performance.now(); }, { passive: true, capture: true });
  }
  const atWork = () => document.visibilityState === "visible" && performance.now() - touchedAt < IDLE_MS;
  const beat = (active = atWork()) => {
    if (key() && navigator.onLine) post("/beat", { item: key(), active: active ? "1" : "" }).catch(() => {});
  };
  setInterval(beat, BEAT_MS);
  document.addEventListener("visibilitychange", () => beat());
  window.addEventListener("pagehide", () => { saveComment(); beat(false); });

  /* --- before the session ends --- */

  const opened = performance.now();
  let ends = Number(root.dataset.ends);
  const stay = byId("stay");
  setInterval(() => {
    const left = ends - (performance.now() - opened) / 1000;
    stay.hidden = left > WARNING_S;
    if (!stay.hidden) byId("left").textContent = left > 0 ? `in ${Math.max(1, Math.ceil(left / 60))} minutes` : "now";
  }, 1000);
  stay.addEventListener("submit", (event) => {
    event.preventDefault();
    post("/stay", {}).then(async (reply) => {
      if (!reply.ok) throw new Error(String(reply.status));
      ends = (performance.now() - opened) / 1000 + Number(await reply.text());
      stay.hidden = true;
      say("You stay in.");
    }).catch(() => say("That did not reach the site; try again."));
  });

  restoreDraft();
  beat();
})();
