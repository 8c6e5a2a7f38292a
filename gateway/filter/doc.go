// Package filter is the gateway's request pipeline. It contains the [Exchange] (one request with its response), the [Filter] (one stage),
// the [Chain] that runs filters in order, and the filters that do not belong to a feature package.
//
// The HTTP server and the server for Envoy's external processing (ext_proc) run the same chain, which has three parts. The Headers part
// needs only the request headers, so a refusal there does not read the body. The Body part parses the body and translates legacy requests
// to v2 calls. The Call part checks one v2 call: it runs once for a v2 request, and once for each v2 call that a legacy request is
// translated to. Package gateway assembles the chain from the stages of all packages, in the order of its list of stages.
//
// Every filter has a request phase. A filter that implements [ResponseFilter] also has a response phase, which runs in reverse order, also
// after a refusal. A server calls [Chain.RunHeaders], [Chain.RunBody] and [Chain.Dispatch] until one of them sets a response, then
// [Chain.RunResponse]. It calls [Exchange.Deliver] once it knows whether the response has reached the caller. [Pipeline.Run] makes all of
// these calls; the HTTP server uses it. Begin reading with [Filter], [Chain] and [Ports].
//
// Filters have no state of their own. An Exchange holds the state of one request. A [Pipeline] is one configuration and never changes. The
// state of this process is in [ReadCache], [Memory], [Streams] and [Guard]. Everything that outlives the process is reached through the
// [Ports].
//
// Invariants: no filter changes Exchange.In. Exchange.Out is built from parsed values only, except for calls to load-balanced endpoints. A
// filter refuses a request by returning an error and never writes an error response itself. Errors become problems (RFC 9457) in this
// package and nowhere else.
//
// # Words
//
//   - A door is one of the two servers that receive requests: the HTTP server, or the server for Envoy's external processing.
//   - A run is a job, a completion or another request for work to an endpoint. The run interface is the platform's API for runs, next to
//     its v2 API for resources.
//   - A load-balanced endpoint receives HTTP requests directly, at any path; the gateway does not read their content. A model server is a
//     worker that offers an OpenAI-compatible API.
//   - A hold is the ledger's reservation for a call until its outcome is known.
//   - An intent is the record of a call that must not be carried out twice, such as a call that creates a resource. It is recorded before
//     the call is sent.
//   - A pass is one comparison of an organisation's ledger with the platform.
//   - A scope is a key, a team or an organisation with quotas or budgets.
//   - A nested exchange is a v2 call of a legacy request.
package filter
