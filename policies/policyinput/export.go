package policyinput

import (
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Decoded returns the input's document as decoded JSON, for the decision log, replay and tools. It contains the digest of the price
// list in place of the list. Values of bodies are shared with the Input.
func (in *Input) Decoded() (map[string]any, error) {
	d, err := in.Document()
	if err != nil {
		return nil, err
	}
	v, err := exported(d.part())
	if err != nil {
		return nil, err
	}
	out, _ := v.(map[string]any)
	return out, nil
}

func exported(v any) (any, error) {
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
			e, err := exported(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			out[m.name] = e
		}
		return out, nil
	case *catalog.Snapshot:
		return map[string]any{"known": x != nil, "digest": x.Digest()}, nil
	case Money:
		return json.Number(x.String()), nil
	case map[string]any:
		if x == nil { // as policies see it
			return map[string]any{}, nil
		}
		return x, nil
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
