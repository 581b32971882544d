#include "text.h"

#define IS_VISIBLE(c) (c > 0x20 && c < 0x7f)
#define IS_NAME(c) IS_VISIBLE(c) && c != ':'
#define IS_VALUE(c) IS_VISIBLE(c) || c == ' '
#define IS_PLAIN(c) (IS_VISIBLE(c) && c != '<' && c != '"' && c != '\\')
#define IN_KEY(c) (!IS_PLAIN(c) || c == '#' || c == '%' || c == '(' ? 0 : c >= 'A' && c <= 'Z' ? c | 0x20 : c)

const cdx_byte cdx_is_name[256] = CDX_TABLE(IS_NAME);
const cdx_byte cdx_is_value[256] = CDX_TABLE(IS_VALUE);
const cdx_byte cdx_is_plain[256] = CDX_TABLE(IS_PLAIN);
const cdx_byte cdx_in_key[256] = CDX_TABLE(IN_KEY);
