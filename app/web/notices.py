"""What a page says once after something was done. The browser carries the name, never the words."""

NOTICES = {
    "signed-in": "You are signed in.",
    "signed-out": "You are signed out.",
    "signed-out-everywhere": "You are signed out everywhere.",
    "session-ended": "That session has ended.",
    "sessions-ended": "All other sessions have ended.",
    "password-set": "The new password holds. All other sessions have ended.",
    "name-changed": "Your name is changed.",
    "welcome": "Welcome. Your account is ready.",
    "invite-taken-back": "The invitation is taken back: its link opens nothing any more.",
    "role-changed": "The role is changed.",
    "person-disabled": "The account is disabled and signed out everywhere.",
    "run-started": "The run is stored and begins by itself. You may leave this page.",
    "run-kept-back": "The run will not be published by itself; you can do so when it is finished.",
    "run-paused": "The run is paused; what is on its way still comes back. Nothing is lost.",
    "run-cancelled": "The run is cancelled. What was stored is kept.",
    "run-resumed": "The run goes on from where it stood.",
    "run-nothing-to-resume": "There was nothing to go on with.",
    "run-published": "The run is on the board.",
    "run-withdrawn": "The run is off the board; its reason stands there.",
    "person-enabled": "The account is enabled again.",
}
