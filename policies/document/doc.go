// Package document renders the reference of policies in Markdown: of the library,
// of an organisation's own policies and of the input that both judge.
package document
