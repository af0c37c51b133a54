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
    "person-enabled": "The account is enabled again.",
}
