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
	unsigned long code;
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

/* error.c */
void glue_clear_errors(void);
void glue_take_error(glue_error *e, const char *otherwise);

#endif
