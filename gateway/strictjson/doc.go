// Package strictjson decodes and encodes JSON such that all parties agree on the meaning of a document.
//
// Decode decodes a request body to plain values: map[string]any, []any, string, bool, nil and json.Number. It rejects
// everything that JSON decoders are known to interpret differently: duplicate member names in any spelling, invalid
// UTF-8, unpaired surrogates, a byte order mark, and data after the document. It also rejects documents whose processing
// cost is out of proportion to their size, such as deep nesting and very long numbers. DecodeLenient is for responses of
// the platform, which are trusted but may be large.
//
// A document is first decoded in one pass. If that pass rejects it, it is read again token by token to find the error
// and its position.
//
// DecodeWithRaw leaves one large member of a document as a Raw. Its text is validated by the same rules, and decoded when
// it is needed.
//
// DecodeNodes represents objects as Nodes, whose members are decoded when they are needed.
//
// Append encodes such values in one canonical form: members sorted by name, no white space, shortest escapes. The gateway
// sends only output of Append upstream; only a Raw contains bytes copied from the caller.
//
// Invariants: Decode(Append(v)) equals v. Append never fails for a value that Decode returned. Neither uses reflection.
// Both are safe for concurrent use.
//
//	v, err := strictjson.Decode(body, strictjson.DefaultLimits())
//	if e, ok := errors.AsType[*strictjson.SyntaxError](err); ok {
//		log.Print(e.Line, e.Column, e.Code)
//	}
//	out, err := strictjson.Append(nil, v)
package strictjson
