"""Calls an aggregate manager with nothing but Python's standard library.

usage: rpc.py URL CERT KEY CA [--tls VERSION]

Reads calls from standard input, one JSON document a line: {"method": …,
"params": […]}. Answers each with a line: {"reply": …}, {"fault": [code, text]}
or {"error": text}. Values of types that the AM API does not use (dates,
base64, nil) are an error.
"""
import http.client
import json
import ssl
import sys
import xmlrpc.client


def plain(value, where="reply"):
    """Returns the value if it is of types that the AM API uses."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [plain(v, where + "[]") for v in value]
    if isinstance(value, dict):
        return {k: plain(v, where + "." + k) for k, v in value.items()}
    raise TypeError("%s is a %s" % (where, type(value).__name__))


def main():
    url, cert, key, ca = sys.argv[1:5]
    context = ssl.create_default_context(cafile=ca)
    if cert:
        context.load_cert_chain(cert, key)
    if sys.argv[5:6] == ["--tls"]:
        version = getattr(ssl.TLSVersion, sys.argv[6])
        context.minimum_version = context.maximum_version = version
    server = xmlrpc.client.ServerProxy(url, context=context, use_builtin_types=False)
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"reply": plain(getattr(server, call["method"])(*call["params"]))}
        except xmlrpc.client.Fault as e:
            answer = {"fault": [e.faultCode, e.faultString]}
        except xmlrpc.client.ProtocolError as e:
            answer = {"error": "HTTP %d %s" % (e.errcode, e.errmsg)}
        except (OSError, TypeError, http.client.HTTPException, xmlrpc.client.Error) as e:
            answer = {"error": "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(answer), flush=True)


main()
