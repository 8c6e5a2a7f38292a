package ui

import "context"

// Bounds of sessions.
const (
	MaxOfHolder = maxOfHolder
	MaxOfOrg    = maxOfOrg
)

// BeginAs begins a session of a holder in an organisation.
func (s *Sessions) BeginAs(ctx context.Context, org, holder string) (value string, err error) {
	return s.Begin(ctx, "token", session{Name: holder, Org: org, Holder: holder})
}

// Lives reports whether there is a session with the value of a cookie.
func (s *Sessions) Lives(ctx context.Context, value string) bool {
	_, _, err := s.Token(ctx, value)
	return err == nil
}
