"""A mail server for tests. Writes one JSON line to standard output when it listens, and one for each mail it takes."""

import argparse
import asyncio
import email
import json
import signal
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


def say(**words):
    print(json.dumps(words), flush=True)


class Handler:
    def __init__(self, options):
        self.options = options
        self.attempts = 0

    async def handle_DATA(self, server, session, envelope):
        self.attempts += 1
        if self.options.refuse:
            return "550 no such mailbox"
        if self.attempts <= self.options.fail_first:
            say(refused=self.attempts)
            return "451 try again later"
        mail = email.message_from_bytes(envelope.content)
        say(
            mail_from=envelope.mail_from,
            to=envelope.rcpt_tos,
            message_id=mail["Message-ID"],
            subject=str(email.header.make_header(email.header.decode_header(mail["Subject"]))),
            body=mail.get_payload(decode=True).decode(),
            encrypted=session.ssl is not None,
            user=session.auth_data,
        )
        return "250 taken"


def authenticator(options):
    def check(server, session, envelope, mechanism, data):
        given = (data.login.decode(), data.password.decode())
        good = given == (options.user, options.password)
        return AuthResult(success=good, auth_data=options.user if good else None)

    return check


async def serve(options):
    context = None
    if options.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.certificate, options.key)
    handler = Handler(options)

    def session():
        return SMTP(
            handler,
            hostname="localhost",
            tls_context=context,
            require_starttls=context is not None,
            authenticator=authenticator(options) if options.user else None,
            auth_required=options.user is not None,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", options.port)
    say(port=server.sockets[0].getsockname()[1])
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--fail-first", type=int, default=0)
parser.add_argument("--refuse", action="store_true")
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--user")
parser.add_argument("--password")
try:
    asyncio.run(serve(parser.parse_args()))
except KeyboardInterrupt:
    sys.exit(0)
