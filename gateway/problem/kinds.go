package problem

import (
	"cmp"
	"net/http"
)

// Kind is a kind of error response. Every error response that the gateway itself generates has one of the kinds in this package, so that
// operators can count errors by kind and the documentation can list all kinds.
type Kind string

// The kinds, in the order in which a request is processed.
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

// kinds maps every kind to its HTTP status. docs/errors.md describes the kinds.
var kinds = map[Kind]int{
	TooLarge:               http.StatusRequestEntityTooLarge,
	BadRequest:             http.StatusBadRequest,
	VersionUnsupported:     http.StatusHTTPVersionNotSupported,
	HeadersTooLarge:        http.StatusRequestHeaderFieldsTooLarge,
	NotFound:               http.StatusNotFound,
	Misdirected:            http.StatusMisdirectedRequest,
	MethodNotAllowed:       http.StatusMethodNotAllowed,
	Unauthorized:           http.StatusUnauthorized,
	RateLimited:            http.StatusTooManyRequests,
	LimitsUnavailable:      http.StatusServiceUnavailable,
	UnsupportedMedia:       http.StatusUnsupportedMediaType,
	BadSyntax:              http.StatusBadRequest,
	Invalid:                http.StatusUnprocessableEntity,
	RuleBroken:             http.StatusBadRequest,
	Forbidden:              http.StatusForbidden,
	PolicyUnavailable:      http.StatusServiceUnavailable,
	PriceUnavailable:       http.StatusServiceUnavailable,
	PriceUnknown:           http.StatusForbidden,
	BudgetExceeded:         http.StatusPaymentRequired,
	LedgerUnavailable:      http.StatusServiceUnavailable,
	AuditUnavailable:       http.StatusServiceUnavailable,
	KeyReused:              http.StatusUnprocessableEntity,
	InProgress:             http.StatusConflict,
	IdempotencyUnavailable: http.StatusServiceUnavailable,
	KeyConflict:            http.StatusConflict,
	KeysUnavailable:        http.StatusServiceUnavailable,
	IssuerUnavailable:      http.StatusServiceUnavailable,
	OutcomeUnknown:         http.StatusGatewayTimeout,
	UpstreamFailed:         http.StatusBadGateway,
	UpstreamTimeout:        http.StatusGatewayTimeout,
	UpstreamRefused:        http.StatusBadGateway,
	Brownout:               http.StatusServiceUnavailable,
	Overloaded:             http.StatusServiceUnavailable,
	Internal:               http.StatusInternalServerError,
}

// Status returns the HTTP status of the kind, or 500 for an unknown kind.
func (k Kind) Status() int {
	return cmp.Or(kinds[k], http.StatusInternalServerError)
}

// title returns the title of problems of this kind, which is the reason phrase of the HTTP status.
func (k Kind) title() string {
	if k == TooLarge {
		return "Content Too Large" // RFC 9110; net/http returns the older phrase
	}
	return http.StatusText(k.Status())
}
