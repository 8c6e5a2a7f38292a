package policies

import (
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Document is the input as policies see it, as decoded JSON: for the decision
// log, for replay and for tools. The price list is only named by its digest.
// Values of bodies are shared with the Input.
func (in *Input) Document() (map[string]any, error) {
	kind, verb, err := in.classify()
	if err != nil {
		return nil, err
	}
	v, err := exported(document{in: in, kind: kind, verb: verb})
	if err != nil {
		return nil, err
	}
	doc, _ := v.(map[string]any)
	return doc, nil
}

func exported(v any) (any, error) {
	switch x := v.(type) {
	case node:
		out := map[string]any{}
		for _, name := range x.members() {
			m := x.member(name)
			if m == absent {
				continue
			}
			e, err := exported(m)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = e
		}
		return out, nil
	case *catalog.Snapshot:
		return map[string]any{"known": x != nil, "digest": x.Digest()}, nil
	case Money:
		return json.Number(x.String()), nil
	case []string:
		out := make([]any, len(x))
		for i, s := range x {
			out[i] = s
		}
		return out, nil
	case map[string]string:
		out := make(map[string]any, len(x))
		for k, s := range x {
			out[k] = s
		}
		return out, nil
	default:
		return v, nil
	}
}
