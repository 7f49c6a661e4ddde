#include "glue.h"
#include <limits.h>
#include <string.h>
#include <time.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>

void glue_free(void *p) { OPENSSL_free(p); }

X509 *glue_parse_certificate(const unsigned char *der, size_t len, glue_error *e)
{
	const unsigned char *p = der;
	unsigned char *again = NULL;
	int n, same;
	X509 *x;

	glue_clear_errors();
	if (len > LONG_MAX || (x = d2i_X509(NULL, &p, (long)len)) == NULL) {
		glue_take_error(e, "not a certificate");
		return NULL;
	}
	if (p != der + len) {
		glue_take_error(e, "data after the certificate");
		X509_free(x);
		return NULL;
	}
	/* One certificate has one encoding, or its fingerprint says nothing. */
	n = i2d_X509(x, &again);
	same = n >= 0 && (size_t)n == len && memcmp(again, der, len) == 0;
	OPENSSL_free(again);
	if (!same) {
		glue_take_error(e, "encoding is not DER");
		X509_free(x);
		return NULL;
	}
	X509_check_purpose(x, -1, 0); /* reads the extensions once, before threads share it */
	glue_clear_errors();
	return x;
}

X509_CRL *glue_parse_crl(const unsigned char *der, size_t len, glue_error *e)
{
	const unsigned char *p = der;
	X509_CRL *c;

	glue_clear_errors();
	if (len > LONG_MAX || (c = d2i_X509_CRL(NULL, &p, (long)len)) == NULL) {
		glue_take_error(e, "not a revocation list");
		return NULL;
	}
	if (p != der + len) {
		glue_take_error(e, "data after the revocation list");
		X509_CRL_free(c);
		return NULL;
	}
	return c;
}

int glue_certificate_der(X509 *x, unsigned char **out)
{
	*out = NULL;
	return i2d_X509(x, out);
}

int glue_name_der(const X509_NAME *n, unsigned char **out)
{
	*out = NULL;
	return i2d_X509_NAME((X509_NAME *)n, out);
}

int glue_name_text(const X509_NAME *n, unsigned char **out)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *data;
	long len;
	int r = -1;

	*out = NULL;
	if (b == NULL)
		return -1;
	if (X509_NAME_print_ex(b, n, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0) {
		len = BIO_get_mem_data(b, &data);
		if (len >= 0 && len < INT_MAX && (*out = OPENSSL_malloc(len + 1)) != NULL) {
			memcpy(*out, data, len);
			r = (int)len;
		}
	}
	BIO_free(b);
	glue_clear_errors();
	return r;
}

int glue_common_name(const X509_NAME *n, unsigned char **out)
{
	int i = -1, next, r;

	*out = NULL;
	/* The last one is the most specific. */
	while ((next = X509_NAME_get_index_by_NID((X509_NAME *)n, NID_commonName, i)) >= 0)
		i = next;
	if (i < 0)
		return -1;
	r = ASN1_STRING_to_UTF8(out, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(n, i)));
	glue_clear_errors();
	return r;
}

int glue_serial(X509 *x, unsigned char **out, int *negative)
{
	BIGNUM *b = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
	int n = -1;

	*out = NULL;
	if (b != NULL) {
		n = BN_num_bytes(b);
		*negative = BN_is_negative(b);
		if ((*out = OPENSSL_malloc(n + 1)) == NULL)
			n = -1;
		else
			BN_bn2bin(b, *out);
		BN_free(b);
	}
	glue_clear_errors();
	return n;
}

int glue_public_key(X509 *x, unsigned char **out)
{
	int n;

	*out = NULL;
	n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), out);
	glue_clear_errors();
	return n;
}

int glue_key_bits(X509 *x, int *type)
{
	EVP_PKEY *k = X509_get0_pubkey(x);

	glue_clear_errors();
	*type = 0;
	if (k == NULL)
		return 0;
	*type = EVP_PKEY_get_base_id(k);
	return EVP_PKEY_get_bits(k);
}

int glue_time(const ASN1_TIME *t, int out[6])
{
	struct tm tm;

	if (t == NULL || !ASN1_TIME_to_tm(t, &tm)) {
		glue_clear_errors();
		return 0;
	}
	out[0] = tm.tm_year + 1900;
	out[1] = tm.tm_mon + 1;
	out[2] = tm.tm_mday;
	out[3] = tm.tm_hour;
	out[4] = tm.tm_min;
	out[5] = tm.tm_sec;
	return 1;
}

int glue_is_ca(X509 *x)
{
	uint32_t flags = X509_get_extension_flags(x);

	glue_clear_errors();
	return (flags & EXFLAG_BCONS) != 0 && (flags & EXFLAG_CA) != 0;
}

const char *glue_signature_algorithm(X509 *x, int *digest)
{
	const char *name;

	*digest = NID_undef;
	X509_get_signature_info(x, digest, NULL, NULL, NULL);
	name = OBJ_nid2ln(X509_get_signature_nid(x));
	glue_clear_errors();
	return name;
}

int glue_alternative_names(X509 *x, GENERAL_NAMES **out)
{
	int critical = 0;

	*out = X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL);
	glue_clear_errors();
	if (*out != NULL)
		return 1;
	return critical == -1 ? 0 : -1;
}

int glue_alternative_name(GENERAL_NAMES *names, int i, int *type, const unsigned char **text)
{
	const GENERAL_NAME *n;

	if (i >= sk_GENERAL_NAME_num(names))
		return -1;
	n = sk_GENERAL_NAME_value(names, i);
	*type = n->type;
	*text = NULL;
	switch (n->type) {
	case GEN_URI:
	case GEN_EMAIL:
	case GEN_DNS:
		*text = ASN1_STRING_get0_data(n->d.ia5);
		return ASN1_STRING_length(n->d.ia5);
	}
	return 0;
}
