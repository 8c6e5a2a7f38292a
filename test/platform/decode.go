package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a body may nest: nothing in the API needs ten levels,
// except the free-form input of a job.
const maxDepth = 100

// unreadable is the detail of refusals of what is not the JSON, or the query, that an operation takes.
const unreadable = "request could not be processed"

// decode reads body as exactly one JSON value: map[string]any, []any, string,
// bool, nil or json.Number. A repeated name, bytes that are not UTF-8, anything
// after the value and nesting beyond maxDepth are refused with 400.
func decode(body []byte) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badRequest(unreadable, "$: a JSON body is required")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	var v any
	err := jsonv2.UnmarshalDecode(d, &v, jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(decodeNumber)))
	if err != nil {
		return nil, syntaxFault(err)
	}
	if _, end := d.ReadToken(); !errors.Is(end, io.EOF) {
		return nil, badRequest(unreadable, "$: text after the JSON value")
	}
	return v, nil
}

// decodeNumber decodes a number of any size as it is written, and leaves other values to the library.
func decodeNumber(d *jsontext.Decoder, v *any) error {
	switch {
	case d.StackDepth() > maxDepth:
		return badRequest(unreadable, fmt.Sprintf("%s: nested deeper than %d levels", location(d.StackPointer()), maxDepth))
	case d.PeekKind() != '0':
		return errors.ErrUnsupported
	}
	token, err := d.ReadToken()
	*v = json.Number(token.String())
	return err
}

// syntaxFault says where and why the text is not the JSON we take.
func syntaxFault(err error) *problem {
	deep, isDeep := errors.AsType[*problem](err)
	syntax, located := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case isDeep:
		return deep
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badRequest(unreadable, location(syntax.JSONPointer)+": this name appears more than once")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), !located:
		return badRequest(unreadable, "$: the JSON text ends too early")
	default:
		return badRequest(unreadable, fmt.Sprintf("%s: not valid JSON at byte %d: %v", location(syntax.JSONPointer), syntax.ByteOffset, syntax.Err))
	}
}

// location turns a JSON pointer into the way the platform names places: $.a.b.
func location(p jsontext.Pointer) string {
	return strings.Join(append([]string{"$"}, slices.Collect(p.Tokens())...), ".")
}
