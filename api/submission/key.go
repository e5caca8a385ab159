package submission

import (
	"errors"
	"strings"
)

// KeyOf returns the idempotency key of a request's header fields of that name;
// empty if there is none. The key may be bare, or quoted as a structured field's
// string (RFC 9651).
func KeyOf(fields []string) (key string, err error) {
	switch len(fields) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", errors.New("sent more than once")
	}
	key = strings.Trim(fields[0], " \t")
	if strings.HasPrefix(key, `"`) {
		if key, err = unquoteKey(key); err != nil {
			return "", err
		}
	}
	return key, checkKey(key)
}

// unquoteKey reads a structured field's string, in which only the quote and
// the backslash are escaped.
func unquoteKey(quoted string) (string, error) {
	var key strings.Builder
	rest := quoted[1:]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"' && i == len(rest)-1:
			return key.String(), nil
		case c == '\\' && i+1 < len(rest) && (rest[i+1] == '"' || rest[i+1] == '\\'):
			i++
			key.WriteByte(rest[i])
		case c == '"' || c == '\\' || c < ' ' || c > '~':
			return "", errors.New("not a quoted string")
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("quote is not closed")
}
