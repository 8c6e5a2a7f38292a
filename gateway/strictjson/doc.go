// Package strictjson reads and writes JSON where two readers must never
// disagree about the meaning of a document.
//
// Decode makes one pass over the tokens of a request body and yields plain
// values: map[string]any, []any, string, bool, nil and json.Number. It refuses
// everything that other decoders are known to read differently (a member name
// given twice, however it is spelled; invalid UTF-8; lone surrogates; a byte
// order mark; bytes after the document) and everything that makes work out of
// proportion to the bytes sent (nesting, endless numbers). DecodeLenient
// is for answers of the platform, which are trusted to be meant well but not to
// be small.
//
// A text is built in one pass; a text that it does not accept is read again token by
// token, to name each fault with its place.
//
// DecodeAround leaves one large member of a document as a Raw: its text is held
// against the same rules, and decoded when it is looked at.
//
// DecodeListed makes Nodes of objects, whose members are found when they are asked for.
//
// Append writes such values back in one canonical form: members sorted by
// name, no white space, the shortest escapes. What goes upstream is always
// written by Append from what Decode read; of the caller's own bytes, only those of
// a Raw.
//
// Invariants: Decode(Append(v)) equals v; Append never fails on a value that
// Decode returned; neither uses reflection; both are safe for concurrent use.
//
//	v, err := strictjson.Decode(body, strictjson.DefaultLimits())
//	if e, ok := errors.AsType[*strictjson.SyntaxError](err); ok {
//		log.Print(e.Line, e.Column, e.Code)
//	}
//	out, err := strictjson.Append(nil, v)
package strictjson
