package identity

import "time"

// Revocation revokes one token of an issuer, or all tokens that were issued to a subject until a given time.
type Revocation struct {
	// Issuer is the URL of the issuer.
	Issuer string
	// Token is the jti of one token. Subject is the sub of all revoked tokens. Exactly one
	// of the two fields is set.
	Token, Subject string
	// At is the time of a revocation by subject. The revocation also covers tokens issued up to the allowed clock
	// skew later.
	At time.Time
}

// revoked maps revocations, without their times, to their times.
type revoked map[Revocation]time.Time

// Revoke replaces the list of revocations.
func (k *IssuerKeys) Revoke(list []Revocation) {
	all := make(revoked, len(list))
	for _, r := range list {
		at := r.At
		r.At = time.Time{}
		if at.After(all[r]) || all[r].IsZero() {
			all[r] = at
		}
	}
	k.revoked.Store(&all)
}

// SetRevocationsUnknown marks the revocations as unknown. Until the next call of Revoke, Verify returns
// ErrIssuerUnavailable for every token that it would otherwise accept.
func (k *IssuerKeys) SetRevocationsUnknown() { k.revoked.Store(nil) }

// covers reports whether the token with the given claims is revoked.
func (r revoked) covers(c *Claims, skew time.Duration) bool {
	if len(r) == 0 {
		return false
	}
	if id, _ := c.all["jti"].(string); id != "" {
		if _, is := r[Revocation{Issuer: c.Issuer, Token: id}]; is {
			return true
		}
	}
	at, is := r[Revocation{Issuer: c.Issuer, Subject: c.Subject}]
	return is && !c.IssuedAt.After(at.Add(skew))
}
