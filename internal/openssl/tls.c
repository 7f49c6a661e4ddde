#include "glue.h"
#include <limits.h>
#include <stdint.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* Forward secrecy and authenticated encryption only. */
static const char ciphers12[] =
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char ciphers13[] =
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

#define SIGNATURES \
	"ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:ed448:" \
	"RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:" \
	"RSA+SHA256:RSA+SHA384:RSA+SHA512"
/* The list also tells clients which of their certificates will do: without
 * SHA-1 in it, some keep back a certificate that their authority signed so. */
#define OLD_SIGNATURES ":ECDSA+SHA1:RSA+SHA1"

#define PENDING ((intptr_t)-1) /* no verdict yet on the peer's certificates */

/* A server lets every client certificate through: the application judges the
 * chain afterwards, when it can explain a refusal. */
static int accept_any(X509_STORE_CTX *ctx, void *arg)
{
	(void)arg;
	X509_STORE_CTX_set_error(ctx, X509_V_OK);
	return 1;
}

/* A client stops in the middle of the handshake until Go has judged. */
static int ask(X509_STORE_CTX *ctx, void *arg)
{
	SSL *s = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
	intptr_t verdict;

	(void)arg;
	if (s == NULL)
		return 0;
	verdict = (intptr_t)SSL_get_app_data(s);
	if (verdict == PENDING)
		return SSL_set_retry_verify(s);
	X509_STORE_CTX_set_error(ctx, (int)verdict);
	return verdict == X509_V_OK;
}

void glue_set_verdict(SSL *s, int code) { SSL_set_app_data(s, (char *)(intptr_t)code); }

/* Keys are not asked for a pass phrase on the terminal. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf; (void)size; (void)rwflag; (void)arg;
	return -1;
}

SSL_CTX *glue_context_new(int server, int sha1, glue_error *e)
{
	static const unsigned char id[] = "croft";
	SSL_CTX *ctx;

	glue_clear_errors();
	if ((ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())) == NULL) {
		glue_take_error(e, "no TLS context");
		return NULL;
	}
	/* All limits are set here, whatever the system's openssl.cnf says.
	 * Level 0 lets short keys and SHA-1 chains through the handshake. */
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
	SSL_CTX_clear_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT |
		SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION | SSL_OP_ENABLE_KTLS);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	/* No resumption: each connection presents its certificate. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(ctx, 128 << 10);
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
	    !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_cipher_list(ctx, ciphers12) ||
	    !SSL_CTX_set_ciphersuites(ctx, ciphers13) ||
	    !SSL_CTX_set1_sigalgs_list(ctx, sha1 ? SIGNATURES OLD_SIGNATURES : SIGNATURES) ||
	    !SSL_CTX_set_num_tickets(ctx, 0) ||
	    !SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1)) {
		glue_take_error(e, "TLS settings not understood");
		SSL_CTX_free(ctx);
		return NULL;
	}
	if (server) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		SSL_CTX_set_cert_verify_callback(ctx, accept_any, NULL);
	} else {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_cert_verify_callback(ctx, ask, NULL);
		/* Servers that ask for the certificate only once they know the
		 * path (Apache, per directory) do it so in TLS 1.3. */
		SSL_CTX_set_post_handshake_auth(ctx, 1);
	}
	return ctx;
}

int glue_context_identity(SSL_CTX *ctx, X509 **chain, size_t n,
	const void *key, size_t keylen, glue_error *e)
{
	EVP_PKEY *k = NULL;
	BIO *b;
	size_t i;
	int ok;

	glue_clear_errors();
	if (keylen <= INT_MAX && (b = BIO_new_mem_buf(key, (int)keylen)) != NULL) {
		k = PEM_read_bio_PrivateKey(b, NULL, no_pass_phrase, NULL);
		BIO_free(b);
	}
	if (k == NULL) {
		glue_take_error(e, "not a private key");
		return 0;
	}
	ok = SSL_CTX_use_certificate(ctx, chain[0]) && SSL_CTX_use_PrivateKey(ctx, k) &&
		SSL_CTX_check_private_key(ctx);
	for (i = 1; ok && i < n; i++)
		ok = SSL_CTX_add1_chain_cert(ctx, chain[i]) > 0;
	EVP_PKEY_free(k);
	if (!ok)
		glue_take_error(e, "certificate and key not usable");
	return ok;
}

SSL *glue_conn_new(SSL_CTX *ctx, int server, const char *name, glue_error *e)
{
	SSL *s;
	BIO *in, *out;

	glue_clear_errors();
	s = SSL_new(ctx);
	in = BIO_new(BIO_s_mem());
	out = BIO_new(BIO_s_mem());
	if (s == NULL || in == NULL || out == NULL)
		goto fail;
	/* An empty buffer is not the end: Go knows when the peer is gone. */
	BIO_set_mem_eof_return(in, -1);
	BIO_set_mem_eof_return(out, -1);
	SSL_set_app_data(s, (char *)PENDING);
	if (name != NULL && name[0] != '\0' && !SSL_set_tlsext_host_name(s, name))
		goto fail;
	SSL_set_bio(s, in, out);
	if (server)
		SSL_set_accept_state(s);
	else
		SSL_set_connect_state(s);
	return s;
fail:
	glue_take_error(e, "no TLS connection");
	BIO_free(in);
	BIO_free(out);
	SSL_free(s);
	return NULL;
}

static int feed(SSL *s, const void *in, size_t len)
{
	size_t n;

	glue_clear_errors();
	return len == 0 || (BIO_write_ex(SSL_get_rbio(s), in, len, &n) && n == len);
}

static void report(SSL *s, int ret, glue_result *r)
{
	unsigned long code;

	switch (SSL_get_error(s, ret)) {
	case SSL_ERROR_NONE:
		r->status = GLUE_DONE;
		break;
	case SSL_ERROR_WANT_READ:
		r->status = GLUE_WANT_DATA;
		break;
	case SSL_ERROR_WANT_RETRY_VERIFY:
		r->status = GLUE_VERIFY;
		break;
	case SSL_ERROR_ZERO_RETURN:
		r->status = GLUE_CLOSED;
		break;
	default:
		r->status = GLUE_FAILED;
		code = ERR_peek_error();
		if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
			switch (ERR_GET_REASON(code)) {
			case SSL_R_HTTP_REQUEST:
			case SSL_R_HTTPS_PROXY_REQUEST:
				r->reason = GLUE_REASON_PLAIN_HTTP;
				break;
			case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
				r->reason = GLUE_REASON_NO_CERTIFICATE;
				break;
			case SSL_R_UNSUPPORTED_PROTOCOL:
			case SSL_R_WRONG_VERSION_NUMBER:
				r->reason = GLUE_REASON_OLD_PROTOCOL;
				break;
			case SSL_R_NO_SHARED_CIPHER:
				r->reason = GLUE_REASON_NO_CIPHER;
				break;
			}
		}
		glue_take_error(&r->error, "connection broken");
	}
	r->outgoing = BIO_ctrl_pending(SSL_get_wbio(s)) > 0;
	r->partial = SSL_has_pending(s) || BIO_ctrl_pending(SSL_get_rbio(s)) > 0;
}

static void out_of_memory(glue_result *r)
{
	r->status = GLUE_FAILED;
	glue_take_error(&r->error, "out of memory");
}

void glue_handshake(SSL *s, const void *in, size_t inlen, glue_result *r)
{
	if (!feed(s, in, inlen))
		out_of_memory(r);
	else
		report(s, SSL_do_handshake(s), r);
}

void glue_read(SSL *s, const void *in, size_t inlen, void *out, size_t outlen, glue_result *r)
{
	int ret;

	if (!feed(s, in, inlen)) {
		out_of_memory(r);
		return;
	}
	ret = SSL_read(s, out, outlen > INT_MAX ? INT_MAX : (int)outlen);
	r->n = ret > 0 ? ret : 0;
	report(s, ret, r);
}

void glue_write(SSL *s, const void *data, size_t len, glue_result *r)
{
	int ret;

	glue_clear_errors();
	ret = SSL_write(s, data, len > INT_MAX ? INT_MAX : (int)len);
	r->n = ret > 0 ? ret : 0;
	report(s, ret, r);
}

void glue_close_notify(SSL *s)
{
	glue_clear_errors();
	SSL_shutdown(s);
	glue_clear_errors();
}

size_t glue_outgoing(SSL *s, void *out, size_t len)
{
	size_t n = 0;

	if (!BIO_read_ex(SSL_get_wbio(s), out, len, &n))
		n = 0;
	return n;
}

STACK_OF(X509) *glue_peer_chain(SSL *s)
{
	STACK_OF(X509) *sent = SSL_get_peer_cert_chain(s), *chain;
	X509 *leaf = SSL_get0_peer_certificate(s);

	chain = sent == NULL ? sk_X509_new_null() : X509_chain_up_ref(sent);
	/* A server's list of what the client sent lacks the first one. */
	if (chain != NULL && leaf != NULL && SSL_is_server(s)) {
		X509_up_ref(leaf);
		sk_X509_unshift(chain, leaf);
	}
	glue_clear_errors();
	return chain;
}
