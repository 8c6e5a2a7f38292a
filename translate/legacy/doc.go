// Package legacy holds the rules that the platform's legacy APIs share: how their templates, volumes and endpoints map to
// v2, which facts must be stored because v2 does not keep them, and how an update is merged with the current resource.
//
// A dialect reads its input into structs (TemplateInput, EndpointInput) of Optional fields, which distinguish absent
// and given values. Settings without a rule go into PassThrough. The dialect words the errors (InvalidError,
// RefusedError) and builds responses from the views of translate/v2. Quirks describes differences between the APIs that
// have only historical reasons.
package legacy
