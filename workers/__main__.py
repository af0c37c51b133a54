"""`python -m workers worker …` and `… beat …`: Celery's command, its log JSON lines from the first one on."""

import sys

from workers.celery_app import celery_app, log_as_the_site_does

if __name__ == "__main__":
    log_as_the_site_does()
    celery_app.start(sys.argv[1:])
