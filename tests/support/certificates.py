"""Certificates made for a test: a CA, that of localhost, one that has expired, and another CA."""

import subprocess

from system_tools import missing, redis_server, tool


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def make_certificates(directory):
    """Make a CA, a certificate of localhost, one that has expired, and a CA of somebody else."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other-ca"):
        subject = ("-subj", f"/CN={name}", "-days", "2")
        openssl(directory, "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", *subject)  # fmt: skip  # noqa: E501  (one command)
    (directory / "names").write_text("subjectAltName=DNS:localhost\n")
    for name, days in (("server", "2"), ("expired", "-1")):
        openssl(directory, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x")  # fmt: skip  # noqa: E501  (one command)
        signed_by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl(directory, "x509", "-req", "-in", f"{name}.csr", *signed_by, "-days", days,
                "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip


def server_with_tls():
    """Return the redis-server to use, or say why there is none."""
    found = redis_server()
    tool("openssl", "openssl")
    # Without support for it this option is one the server does not know.
    tried = subprocess.run(
        [found, "--tls-port", "0", "--port", "-1"], capture_output=True, text=True
    )
    if "tls-port" in tried.stdout + tried.stderr:
        missing(f"needs a Redis with TLS: {found} is built without")
    return found
