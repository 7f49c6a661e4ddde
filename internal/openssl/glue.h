#ifndef CROFT_OPENSSL_GLUE_H
#define CROFT_OPENSSL_GLUE_H

#include <stdint.h>
#include <stddef.h>
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#if OPENSSL_VERSION_NUMBER < 0x30000020L
#error "OpenSSL 3.0.2 or newer is needed"
#endif

/* Functions that can fail put a message here. OpenSSL keeps its errors for
 * each thread and Go moves between threads from call to call, so an error must
 * be read in the call that made it. */
typedef struct {
	char text[240];
} glue_error;

/* certificate.c */
X509 *glue_parse_certificate(const unsigned char *der, size_t len, glue_error *e);
X509_CRL *glue_parse_crl(const unsigned char *der, size_t len, glue_error *e);
/* The functions that return bytes allocate them; the caller frees them with
 * glue_free. They return -1 when there is nothing to return. */
int glue_certificate_der(X509 *x, unsigned char **out);
int glue_name_der(const X509_NAME *n, unsigned char **out);
int glue_name_text(const X509_NAME *n, unsigned char **out);
int glue_common_name(const X509_NAME *n, unsigned char **out);
int glue_serial(X509 *x, unsigned char **out, int *negative);
int glue_public_key(X509 *x, unsigned char **out);
int glue_key_bits(X509 *x, int *type);
int glue_time(const ASN1_TIME *t, int out[6]);
int glue_is_ca(X509 *x);
const char *glue_signature_algorithm(X509 *x, int *digest);
/* Subject alternative names: 1 when there are some, 0 when there are none,
 * -1 when the extension is broken or there are several. */
int glue_alternative_names(X509 *x, GENERAL_NAMES **out);
int glue_alternative_name(GENERAL_NAMES *names, int i, int *type, const unsigned char **text);
void glue_free(void *p);

/* verify.c */
typedef struct {
	X509 *leaf;
	int64_t time;
	int max_depth;
	int purpose;
} glue_verify_request;

typedef struct {
	int ok;
	int reason;
	int depth;
	X509 *certificate;      /* owned: the one at fault, or NULL */
	STACK_OF(X509) *chain;  /* owned: leaf first, as far as it was built */
} glue_verify_result;

int glue_verify(const glue_verify_request *q, X509 **roots, size_t nroots,
	X509 **others, size_t nothers, X509_CRL **crls, size_t ncrls,
	glue_verify_result *r);
int glue_match_host(X509 *x, const char *name, size_t len);
int glue_match_ip(X509 *x, const unsigned char *ip, size_t len);

/* Macros of OpenSSL that Go cannot call. */
int glue_stack_len(const STACK_OF(X509) *s);
X509 *glue_stack_at(const STACK_OF(X509) *s, int i);
void glue_stack_free(STACK_OF(X509) *s);

/* tls.c */
enum {
	GLUE_DONE,      /* the call did what it was asked to */
	GLUE_WANT_DATA, /* more ciphertext from the peer is needed */
	GLUE_CLOSED,    /* the peer said that it sends no more */
	GLUE_VERIFY,    /* the peer's certificates wait for a verdict */
	GLUE_FAILED     /* the connection is broken; error says why */
};

enum { GLUE_REASON_OTHER, GLUE_REASON_PLAIN_HTTP, GLUE_REASON_NO_CERTIFICATE,
	GLUE_REASON_OLD_PROTOCOL, GLUE_REASON_NO_CIPHER };

typedef struct {
	int n;          /* bytes read or written */
	int status;     /* one of the above */
	int outgoing;   /* whether ciphertext waits to be sent */
	int partial;    /* whether a part of a record has been received */
	int reason;     /* for GLUE_FAILED */
	glue_error error;
} glue_result;

SSL_CTX *glue_context_new(int server, int sha1, glue_error *e);
int glue_context_identity(SSL_CTX *ctx, X509 **chain, size_t n,
	const void *key, size_t keylen, glue_error *e);
SSL *glue_conn_new(SSL_CTX *ctx, int server, const char *name, glue_error *e);
/* in is ciphertext that has arrived since the last call. */
void glue_handshake(SSL *s, const void *in, size_t inlen, glue_result *r);
void glue_read(SSL *s, const void *in, size_t inlen, void *out, size_t outlen, glue_result *r);
void glue_write(SSL *s, const void *data, size_t len, glue_result *r);
void glue_close_notify(SSL *s);
/* Takes ciphertext to be sent; returns how much. */
size_t glue_outgoing(SSL *s, void *out, size_t len);
/* X509_V_OK accepts the peer's certificates, another X509_V_ code refuses. */
void glue_set_verdict(SSL *s, int code);
STACK_OF(X509) *glue_peer_chain(SSL *s);

/* error.c */
void glue_clear_errors(void);
void glue_take_error(glue_error *e, const char *otherwise);

#endif
