#!/usr/bin/env bash
# Guess: what takes quotations and signatures out of mail leaves all that the writer wrote.
# Seen: email-reply-parser 0.5.12 takes a last paragraph that begins with '-5 degrees' for a signature;
#       mail-parser-reply 1.36 takes '-valve A' for one, with all that follows, and of answers between quoted lines its
#       latest_reply has none.
# Why it matters: answers are what a collection of mails is asked for, and only their greetings are indexed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet email-reply-parser==0.5.12 mail-parser-reply==1.36
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from email_reply_parser import EmailReplyParser
from mailparser_reply import EmailReplyParser as MailReplyParser

readings = "Hello Ann,\n\nthe readings were:\n\n-5 degrees in May\n-7 degrees in June\n"
parts = "Hello Ann,\n\nplease check:\n-valve A\n-pump\n\nThe fee is due in May.\n"
between = """Hello Ann,

On Mon, 3 Mar 2025 at 10:00, Ann <ann@example.org> wrote:
> When is the fee due?

In May.

> And who pays?

The tenant pays.
"""
mails = MailReplyParser(languages=["en"])
seen = [
    EmailReplyParser.parse_reply(readings),
    mails.read(parts).replies[0].body,
    mails.read(between).latest_reply,
]
print({name: version(name) for name in ("email-reply-parser", "mail-parser-reply")}, seen)
assert seen == ["Hello Ann,\n\nthe readings were:", "Hello Ann,\n\nplease check:", "Hello Ann,"], "changed"
assert EmailReplyParser.parse_reply(between) == "Hello Ann,\nIn May.\nThe tenant pays.", "changed"
PYTHON
