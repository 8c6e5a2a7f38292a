package problem

import "net/http"

// Kind names a type of refusal. The list is closed: every response that the gateway generates by itself has one of these
// kinds, so that operators can count them and the documentation can list them.
type Kind string

// The kinds, in the order of request processing.
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
	// meaning is the description in docs/errors.md.
	meaning string
}

// kinds describes every kind; docs/errors.md is generated from it.
var kinds = map[Kind]row{
	TooLarge:   {http.StatusRequestEntityTooLarge, "Content Too Large", "the body exceeds the size limit, which is checked first"},
	BadRequest: {http.StatusBadRequest, "Bad Request", "the request line, headers, path or query is malformed or ambiguous"},
	VersionUnsupported: {http.StatusHTTPVersionNotSupported, "HTTP Version Not Supported",
		"only HTTP/1.1, HTTP/1.0 and HTTP/2 are supported"},
	HeadersTooLarge: {http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large",
		"there are too many headers, or a header is too long"},
	NotFound: {http.StatusNotFound, "Not Found",
		"no operation has this path, a run names neither an endpoint nor a public model, the resource, key or approval request does not exist, or the link is invalid"},
	Misdirected: {http.StatusMisdirectedRequest, "Misdirected Request",
		"the run interface is served by the gateway's own listener, not through Envoy's ext_proc filter"},
	MethodNotAllowed: {http.StatusMethodNotAllowed, "Method Not Allowed", "the path does not support this method; see the header Allow"},
	Unauthorized:     {http.StatusUnauthorized, "Unauthorized", "the key is missing or unknown; the field detail gives the reason"},
	RateLimited:      {http.StatusTooManyRequests, "Too Many Requests", "a rate limit window is full; retry after Retry-After seconds"},
	LimitsUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"rate limits cannot be counted, and this call is not allowed without counting"},
	UnsupportedMedia: {http.StatusUnsupportedMediaType, "Unsupported Media Type", "the body is not plain application/json"},
	BadSyntax:        {http.StatusBadRequest, "Bad Request", "the body is not strict JSON"},
	Invalid: {http.StatusUnprocessableEntity, "Unprocessable Entity",
		"the body does not match the operation's schema, abbreviates a GPU id, or sets labels that are not allowed; the field errors lists every violation"},
	RuleBroken: {http.StatusBadRequest, "Bad Request", "fields of the body contradict each other, or the input of a job is missing"},
	Forbidden:  {http.StatusForbidden, "Forbidden", "a policy of the organisation denies the call; the field policies lists every denial"},
	PolicyUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"the policies could not be evaluated, so the call is refused"},
	PriceUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"the price list is unavailable, so calls whose price a policy needs are refused; or it cannot be determined whether a run without a price uses an endpoint of the organisation"},
	PriceUnknown: {http.StatusForbidden, "Forbidden",
		"the price of the resource or run is unknown, but a cost budget applies; a different GPU or model might have a price"},
	BudgetExceeded: {http.StatusPaymentRequired, "Payment Required",
		"a budget is exhausted; the fields budget, limit, used, reserved, needs and room_at give details"},
	LedgerUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"the spending ledger is unavailable, so calls that increase cost are refused"},
	AuditUnavailable: {http.StatusServiceUnavailable, "Service Unavailable", "the audit log cannot be written, so changes are refused"},
	KeyReused: {http.StatusUnprocessableEntity, "Unprocessable Entity",
		"the Idempotency-Key was already used for a different request"},
	InProgress: {http.StatusConflict, "Conflict",
		"a request with this Idempotency-Key is in progress, or its outcome is unknown; retry after Retry-After seconds"},
	IdempotencyUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"the Idempotency-Key cannot be checked, so the call is refused"},
	KeyConflict: {http.StatusConflict, "Conflict",
		"the key cannot be created or changed: its id or secret is in use, or another request has changed it"},
	KeysUnavailable: {http.StatusServiceUnavailable, "Service Unavailable", "the keys created at run time cannot be read or changed"},
	IssuerUnavailable: {http.StatusServiceUnavailable, "Service Unavailable",
		"the token cannot be verified, because the keys of its issuer are unavailable"},
	OutcomeUnknown: {http.StatusGatewayTimeout, "Gateway Timeout",
		"the outcome of a create is unknown; send the same request again to get the resource"},
	UpstreamFailed:  {http.StatusBadGateway, "Bad Gateway", "the platform did not send a complete response"},
	UpstreamTimeout: {http.StatusGatewayTimeout, "Gateway Timeout", "the platform did not respond in time"},
	UpstreamRefused: {http.StatusBadGateway, "Bad Gateway", "the platform refused the gateway's own credential"},
	Brownout:        {http.StatusServiceUnavailable, "Service Unavailable", "a legacy API is in a scheduled brownout; see Retry-After"},
	Overloaded: {http.StatusServiceUnavailable, "Service Unavailable",
		"the gateway is overloaded, or too many connections or large bodies of the run interface are open; see Retry-After"},
	Internal: {http.StatusInternalServerError, "Internal Server Error",
		"an internal error occurred in the gateway; the log entry with the request id contains the cause"},
}

// Status returns the HTTP status of the kind, or 500 for an unknown kind.
func (k Kind) Status() int {
	if r, ok := kinds[k]; ok {
		return r.status
	}
	return http.StatusInternalServerError
}
