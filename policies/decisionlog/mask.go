package decisionlog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// hidden replaces what is masked.
const hidden = "***"

// builtinMasks are always on: what is a secret by its place.
func builtinMasks() []string {
	var out []string
	for _, root := range []string{
		"/input/request/body", "/input/resource/after", "/input/resource/current", "/input/resource/template/record",
	} {
		for _, field := range []string{
			"/env/*", "/password", "/username", "/s3Config/accessId", "/s3Config/accessSecret", "/webhook", "/webhookV2",
			"/keys/*",
		} {
			out = append(out, root+field)
		}
	}
	return append(out, "/result/mutate/*/value")
}

// parseMask reads a pointer whose parts may be *.
func parseMask(p string) ([]string, error) {
	if p == "" || p[0] != '/' {
		return nil, fmt.Errorf("%q is not a pointer", p)
	}
	parts := strings.Split(p[1:], "/")
	if parts[0] != "input" && parts[0] != "result" {
		return nil, fmt.Errorf("%q is neither below /input nor below /result", p)
	}
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// mask returns v with what the path leads to hidden; only the way there is
// copied. at collects the pointers of what was hidden.
func mask(v any, path []string, at string, masked *[]string) any {
	if len(path) == 0 {
		*masked = append(*masked, at)
		return hidden
	}
	switch x := v.(type) {
	case map[string]any:
		out := maps.Clone(x)
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if path[0] != "*" && path[0] != name {
				continue
			}
			out[name] = mask(x[name], path[1:], at+"/"+escape(name), masked)
		}
		return out
	case []any:
		out := slices.Clone(x)
		for i := range x {
			if path[0] == "*" || path[0] == strconv.Itoa(i) {
				out[i] = mask(x[i], path[1:], at+"/"+strconv.Itoa(i), masked)
			}
		}
		return out
	default:
		return v
	}
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
