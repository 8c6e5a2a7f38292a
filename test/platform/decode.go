package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a body may nest: nothing in the API needs ten levels,
// except the free-form input of a job.
const maxDepth = 100

// decode reads body as exactly one JSON value: map[string]any, []any, string,
// bool, nil or json.Number. A repeated name, bytes that are not UTF-8, anything
// after the value and nesting beyond maxDepth are refused with 400.
func decode(body []byte) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badRequest("request could not be processed", "$: a JSON body is required")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	v, err := decodeValue(d, 0)
	if err == nil {
		if _, end := d.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("$: text after the JSON value")
		}
	}
	if err != nil {
		return nil, badRequest("request could not be processed", syntaxFault(err))
	}
	return v, nil
}

func decodeValue(d *jsontext.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: nested deeper than %d levels", location(d.StackPointer()), maxDepth)
	}
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return json.Number(tok.String()), nil
	case '[':
		return decodeArray(d, depth)
	default:
		return decodeObject(d, depth)
	}
}

func decodeArray(d *jsontext.Decoder, depth int) (any, error) {
	list := []any{}
	for d.PeekKind() != ']' {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.ReadToken()
	return list, err
}

func decodeObject(d *jsontext.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // the token is only good until the next one
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		object[key] = v
	}
	_, err := d.ReadToken()
	return object, err
}

// syntaxFault says where and why the text is not the JSON we take.
func syntaxFault(err error) string {
	syntax, located := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "$: the JSON text ends too early"
	case !located:
		return err.Error()
	case errors.Is(err, jsontext.ErrDuplicateName):
		return location(syntax.JSONPointer) + ": this name appears more than once"
	default:
		return fmt.Sprintf("%s: not valid JSON at byte %d: %v", location(syntax.JSONPointer), syntax.ByteOffset, syntax.Err)
	}
}

// location turns a JSON pointer into the way the platform names places: $.a.b.
func location(p jsontext.Pointer) string {
	var b strings.Builder
	b.WriteByte('$')
	for token := range p.Tokens() {
		b.WriteByte('.')
		b.WriteString(token)
	}
	return b.String()
}
