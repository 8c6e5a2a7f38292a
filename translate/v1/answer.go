package v1

import (
	"encoding/json"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// encode writes the JSON body of a refusal. If the body cannot be encoded, which should not happen, it writes a fixed
// 500.
func encode(out *translate.Outgoing, body any) {
	raw, err := translate.AppendJSON(nil, body)
	if err != nil {
		out.Status = http.StatusInternalServerError
		raw = []byte(`{"error":"` + textBroken + `","message":"` + textBroken + `","status":500}`)
	}
	out.ContentType, out.Body = "application/json", raw
}

// money returns the number at path in its original spelling, or 0.
func money(v any, path ...string) json.Number { return amount(translate.Decimal(v, path...)) }

// amount returns n, or 0 if n is not a number.
func amount(n json.Number) json.Number {
	if _, ok := translate.Float(n); !ok {
		return "0"
	}
	return n
}

// object returns the object at path, or an empty object. It is never null.
func object(v any, path ...string) map[string]any {
	if m := translate.Members(v, path...); m != nil {
		return m
	}
	return map[string]any{}
}

// each converts the elements of an array. The result is never null.
func each(items []any, convert func(any) map[string]any) []any {
	out := make([]any, 0, len(items))
	for _, item := range items {
		out = append(out, convert(item))
	}
	return out
}
