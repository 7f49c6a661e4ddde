#include "glue.h"
#include <time.h>

int glue_stack_len(const STACK_OF(X509) *s) { return s == NULL ? 0 : sk_X509_num(s); }
X509 *glue_stack_at(const STACK_OF(X509) *s, int i) { return sk_X509_value(s, i); }
void glue_stack_free(STACK_OF(X509) *s) { sk_X509_pop_free(s, X509_free); }

/* A revocation list says who is revoked; that a certificate's issuer has none,
 * or an old one, is no reason to refuse. */
static int on_error(int ok, X509_STORE_CTX *ctx)
{
	int last;

	if (ok)
		return 1;
	switch (X509_STORE_CTX_get_error(ctx)) {
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
		break;
	case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
		/* An anchor that is no root has an issuer we need not know. */
		last = sk_X509_num(X509_STORE_CTX_get0_chain(ctx)) - 1;
		if (X509_STORE_CTX_get_error_depth(ctx) != last)
			return 0;
		break;
	default:
		return 0;
	}
	X509_STORE_CTX_set_error(ctx, X509_V_OK);
	return 1;
}

static STACK_OF(X509) *stack_of(X509 **list, size_t n)
{
	STACK_OF(X509) *s = sk_X509_new_reserve(NULL, (int)n);
	size_t i;

	for (i = 0; s != NULL && i < n; i++) {
		X509_up_ref(list[i]);
		sk_X509_push(s, list[i]);
	}
	return s;
}

int glue_verify(const glue_verify_request *q, X509 **roots, size_t nroots,
	X509 **others, size_t nothers, X509_CRL **crls, size_t ncrls,
	glue_verify_result *r)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	STACK_OF(X509) *anchors = stack_of(roots, nroots);
	STACK_OF(X509) *untrusted = stack_of(others, nothers);
	STACK_OF(X509_CRL) *revoked = sk_X509_CRL_new_reserve(NULL, (int)ncrls);
	X509_VERIFY_PARAM *param;
	size_t i;
	int done = 0;

	glue_clear_errors();
	if (store == NULL || ctx == NULL || anchors == NULL || untrusted == NULL || revoked == NULL)
		goto out;
	for (i = 0; i < ncrls; i++) {
		X509_CRL_up_ref(crls[i]);
		sk_X509_CRL_push(revoked, crls[i]);
	}
	if (!X509_STORE_CTX_init(ctx, store, q->leaf, untrusted))
		goto out;
	X509_STORE_CTX_set0_trusted_stack(ctx, anchors);
	X509_STORE_CTX_set0_crls(ctx, revoked);
	X509_STORE_CTX_set_verify_cb(ctx, on_error);
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
	if (ncrls > 0)
		X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	X509_VERIFY_PARAM_set_time(param, (time_t)q->time);
	X509_VERIFY_PARAM_set_depth(param, q->max_depth);
	X509_VERIFY_PARAM_set_auth_level(param, 0); /* the caller judges keys and digests */
	if (q->purpose != 0 && !X509_VERIFY_PARAM_set_purpose(param, q->purpose))
		goto out;

	r->ok = X509_verify_cert(ctx) == 1;
	r->reason = X509_STORE_CTX_get_error(ctx);
	r->depth = X509_STORE_CTX_get_error_depth(ctx);
	r->certificate = X509_STORE_CTX_get_current_cert(ctx);
	if (r->certificate != NULL)
		X509_up_ref(r->certificate);
	r->chain = X509_STORE_CTX_get1_chain(ctx);
	done = 1;
out:
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	sk_X509_pop_free(anchors, X509_free);
	sk_X509_pop_free(untrusted, X509_free);
	sk_X509_CRL_pop_free(revoked, X509_CRL_free);
	glue_clear_errors();
	return done;
}

int glue_match_host(X509 *x, const char *name, size_t len)
{
	int r = X509_check_host(x, name, len, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL);

	glue_clear_errors();
	return r == 1;
}

int glue_match_ip(X509 *x, const unsigned char *ip, size_t len)
{
	int r = X509_check_ip(x, ip, len, 0);

	glue_clear_errors();
	return r == 1;
}
