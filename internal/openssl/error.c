#include "glue.h"
#include <stdio.h>
#include <openssl/err.h>

void glue_clear_errors(void) { ERR_clear_error(); }

/* The first error in the queue is the cause, later ones its consequences. */
void glue_take_error(glue_error *e, const char *otherwise)
{
	const char *data = NULL, *reason;
	int flags = 0;
	unsigned long code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);

	reason = code == 0 ? NULL : ERR_reason_error_string(code);
	if (reason == NULL)
		reason = otherwise;
	if (data != NULL && (flags & ERR_TXT_STRING) && data[0] != '\0')
		snprintf(e->text, sizeof e->text, "%s (%s)", reason, data);
	else
		snprintf(e->text, sizeof e->text, "%s", reason);
	ERR_clear_error();
}
