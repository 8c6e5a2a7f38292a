package policyinput

import (
	"encoding/json"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Decoded returns the input's document as decoded JSON, for the decision log, replay and tools. It contains the digest of the price
// list in place of the list. Values of bodies are shared with the Input.
func (in *Input) Decoded() (map[string]any, error) {
	d, err := in.Document()
	if err != nil {
		return nil, err
	}
	out, _ := exported(d.part()).(map[string]any)
	return out, nil
}

func exported(v any) any {
	switch x := v.(type) {
	case part:
		out := map[string]any{}
		for _, m := range x.members {
			v := m.value(x.of)
			if v == absent {
				continue
			}
			if m.whole {
				v = part{m.inner, v}
			}
			out[m.name] = exported(v)
		}
		return out
	case *catalog.Snapshot:
		return map[string]any{"known": x != nil, "digest": x.Digest()}
	case Money:
		return json.Number(x.String())
	case map[string]any:
		if x == nil { // as policies see it
			return map[string]any{}
		}
		return x
	case []string:
		out := make([]any, len(x))
		for i, s := range x {
			out[i] = s
		}
		return out
	case map[string]string:
		out := make(map[string]any, len(x))
		for k, s := range x {
			out[k] = s
		}
		return out
	default:
		return v
	}
}
