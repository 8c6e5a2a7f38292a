package route

import (
	"net/url"
	"strings"
)

// Limits of a query string.
const (
	maxQuery  = 8192
	maxParams = 64
)

// ParseQuery parses a query strictly. Pairs must be separated by "&", escapes must be valid, and names and values must be printable UTF-8.
// There must be at most 64 parameters. For any other query, ParseQuery returns a *PathError.
func ParseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	if len(raw) > maxQuery {
		return nil, &PathError{"the query is too long"}
	}
	if strings.ContainsAny(raw, ";#") {
		return nil, &PathError{"the query contains a separator that parsers interpret differently"}
	}
	if strings.Count(raw, "&") >= maxParams {
		return nil, &PathError{"the query has too many parameters"}
	}
	q := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := unescapeQuery(name)
		if err != nil {
			return nil, err
		}
		if value, err = unescapeQuery(value); err != nil {
			return nil, err
		}
		q[name] = append(q[name], value)
	}
	return q, nil
}

func unescapeQuery(s string) (string, error) {
	out, err := url.QueryUnescape(s)
	if err != nil {
		return "", &PathError{"the query contains an invalid escape"}
	}
	for _, r := range out {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return "", &PathError{"the query contains a control character or invalid UTF-8"}
		}
	}
	return out, nil
}
