package storetest

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
)

// Recorded returns a decoded value with Records in place of maps.
func Recorded(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return record(v)
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = Recorded(v[i])
		}
		return items
	}
	return v
}

// record is a translate.Record made of a map.
type record map[string]any

func (r record) Get(name string) (any, bool) {
	value, ok := r[name]
	return Recorded(value), ok
}

func (r record) Text(name string) string {
	s, _ := r[name].(string)
	return s
}

func (r record) AppendTexts(texts []string, name string) []string {
	return translate.AppendTexts(texts, map[string]any(r), name)
}

func (r record) Number(name string) json.Number {
	n, _ := r[name].(json.Number)
	return n
}

func (r record) AppendNames(names []string) []string { return slices.AppendSeq(names, maps.Keys(r)) }

func (r record) Map() map[string]any { return r }
