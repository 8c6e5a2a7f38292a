package problem

import "net/http"

// Kind names a refusal. The list is closed: every answer the gateway makes by
// itself is one of these, so operators can count them and docs can list them.
type Kind string

// The kinds, in the order a request can meet them.
const (
	TooLarge               Kind = "too_large"
	BadRequest             Kind = "bad_request"
	VersionUnsupported     Kind = "version_unsupported"
	HeadersTooLarge        Kind = "headers_too_large"
	NotFound               Kind = "not_found"
	Misdirected            Kind = "misdirected"
	MethodNotAllowed       Kind = "method_not_allowed"
	Unauthorized           Kind = "unauthorized"
	RateLimited            Kind = "rate_limited"
	LimitsUnavailable      Kind = "limits_unavailable"
	UnsupportedMedia       Kind = "unsupported_media"
	BadSyntax              Kind = "bad_syntax"
	Invalid                Kind = "invalid"
	RuleBroken             Kind = "rule_broken"
	Forbidden              Kind = "forbidden"
	PolicyUnavailable      Kind = "policy_unavailable"
	PriceUnavailable       Kind = "price_unavailable"
	PriceUnknown           Kind = "price_unknown"
	BudgetExceeded         Kind = "budget_exceeded"
	LedgerUnavailable      Kind = "ledger_unavailable"
	AuditUnavailable       Kind = "audit_unavailable"
	KeyReused              Kind = "key_reused"
	InProgress             Kind = "in_progress"
	IdempotencyUnavailable Kind = "idempotency_unavailable"
	KeyConflict            Kind = "key_conflict"
	KeysUnavailable        Kind = "keys_unavailable"
	IssuerUnavailable      Kind = "issuer_unavailable"
	OutcomeUnknown         Kind = "outcome_unknown"
	UpstreamFailed         Kind = "upstream_failed"
	UpstreamTimeout        Kind = "upstream_timeout"
	UpstreamRefused        Kind = "upstream_refused"
	Brownout               Kind = "brownout"
	Overloaded             Kind = "overloaded"
	Internal               Kind = "internal"
)

type row struct {
	status int
	title  string
	// meaning is the line docs/errors.md shows.
	meaning string
}

// kinds is the whole table; docs/errors.md is written from it.
var kinds = map[Kind]row{
	TooLarge:               {http.StatusRequestEntityTooLarge, "Content Too Large", "the body exceeds the limit; checked before anything else"},
	BadRequest:             {http.StatusBadRequest, "Bad Request", "the request line, headers, path or query cannot be read in exactly one way"},
	VersionUnsupported:     {http.StatusHTTPVersionNotSupported, "HTTP Version Not Supported", "only HTTP/1.1, HTTP/1.0 and HTTP/2 are supported"},
	HeadersTooLarge:        {http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large", "too many headers, or one that is too long"},
	NotFound:               {http.StatusNotFound, "Not Found", "no operation has this path, or a run names neither an endpoint nor a public model, or nothing that can be kept has its id, or the link is not valid"},
	Misdirected:            {http.StatusMisdirectedRequest, "Misdirected Request", "the gateway's own listener serves the run interface, not Envoy's ext_proc filter"},
	MethodNotAllowed:       {http.StatusMethodNotAllowed, "Method Not Allowed", "the path exists, the method does not; see Allow"},
	Unauthorized:           {http.StatusUnauthorized, "Unauthorized", "the key is missing or unknown; detail says which"},
	RateLimited:            {http.StatusTooManyRequests, "Too Many Requests", "a window is full; wait for Retry-After seconds"},
	LimitsUnavailable:      {http.StatusServiceUnavailable, "Service Unavailable", "the limits cannot be counted and this call may not pass uncounted"},
	UnsupportedMedia:       {http.StatusUnsupportedMediaType, "Unsupported Media Type", "the body is not plain application/json"},
	BadSyntax:              {http.StatusBadRequest, "Bad Request", "the body is not strict JSON"},
	Invalid:                {http.StatusUnprocessableEntity, "Unprocessable Entity", "the body does not fit the operation's schema, or names a GPU by less than its id, or labels may not be set; errors lists every violation"},
	RuleBroken:             {http.StatusBadRequest, "Bad Request", "members of the body contradict each other, or a job has no input"},
	Forbidden:              {http.StatusForbidden, "Forbidden", "a policy of the organisation refuses; policies lists every denial"},
	PolicyUnavailable:      {http.StatusServiceUnavailable, "Service Unavailable", "the policies gave no verdict, so the call is refused"},
	PriceUnavailable:       {http.StatusServiceUnavailable, "Service Unavailable", "the price list cannot be read, so calls that a policy judges by price are refused; or whether a run without a price is on an endpoint of the organisation"},
	PriceUnknown:           {http.StatusForbidden, "Forbidden", "the price, of a run too, is unknown and a budget in money applies; another choice may have one"},
	BudgetExceeded:         {http.StatusPaymentRequired, "Payment Required", "a budget has no room; budget, limit, used, reserved, needs and room_at say which and how much"},
	LedgerUnavailable:      {http.StatusServiceUnavailable, "Service Unavailable", "the ledger of spending cannot be asked, so calls that raise cost are refused"},
	AuditUnavailable:       {http.StatusServiceUnavailable, "Service Unavailable", "the audit log cannot be written, so changes are refused"},
	KeyReused:              {http.StatusUnprocessableEntity, "Unprocessable Entity", "the Idempotency-Key was used for another request before"},
	InProgress:             {http.StatusConflict, "Conflict", "the request with this Idempotency-Key is under way, or its outcome is not known yet; wait for Retry-After seconds"},
	IdempotencyUnavailable: {http.StatusServiceUnavailable, "Service Unavailable", "it is unknown whether the Idempotency-Key was used before, so the call is refused"},
	KeyConflict:            {http.StatusConflict, "Conflict", "the key cannot be made or changed as it is: its id or secret is taken, or it was changed meanwhile"},
	KeysUnavailable:        {http.StatusServiceUnavailable, "Service Unavailable", "the keys made at run time cannot be read or changed at the moment"},
	IssuerUnavailable:      {http.StatusServiceUnavailable, "Service Unavailable", "the token cannot be verified, because the keys of its issuer cannot be read at the moment"},
	OutcomeUnknown:         {http.StatusGatewayTimeout, "Gateway Timeout", "the outcome of a create is unknown; the same request, sent again, gets the resource that it made"},
	UpstreamFailed:         {http.StatusBadGateway, "Bad Gateway", "the platform could not be reached or broke off"},
	UpstreamTimeout:        {http.StatusGatewayTimeout, "Gateway Timeout", "the platform did not answer in time"},
	UpstreamRefused:        {http.StatusBadGateway, "Bad Gateway", "the platform refused the gateway's own credential"},
	Brownout:               {http.StatusServiceUnavailable, "Service Unavailable", "a scheduled brownout of a retired interface; see Retry-After"},
	Overloaded:             {http.StatusServiceUnavailable, "Service Unavailable", "the gateway has more to do than it can, or too many connections, or too many large bodies of the run interface, are open; see Retry-After"},
	Internal:               {http.StatusInternalServerError, "Internal Server Error", "a fault of the gateway; the log has the cause under the request id"},
}

// Status returns the HTTP status of the kind, 500 for an unlisted one.
func (k Kind) Status() int {
	if r, ok := kinds[k]; ok {
		return r.status
	}
	return http.StatusInternalServerError
}
