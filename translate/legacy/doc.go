// Package legacy holds the rules that the platform's retired interfaces share: the v2 form
// of a template, a volume or an endpoint of theirs, the note that must be kept beside it,
// and how a change is merged with the present resource.
//
// A dialect reads its input into wishes (TemplateWishes, EndpointWishes), in
// which absent, null and given differ, and those without a rule into Plain; it words the errors (InvalidError, RefusedError)
// and writes the answers from the views of translate/v2. Where the interfaces
// differed for no other reason than their history, a field of Quirks says how.
package legacy
