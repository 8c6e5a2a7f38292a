package identity

import "time"

// Revocation withdraws tokens of an issuer that are accepted otherwise: one, or those that
// a subject had been issued by a time.
type Revocation struct {
	// Issuer is its URL.
	Issuer string
	// Token is the jti of a token, Subject a sub; the other is empty.
	Token, Subject string
	// At is the time of a revocation by subject. The skew of clocks is added: tokens
	// issued a little later are withdrawn, too.
	At time.Time
}

// revoked holds revocations by subject, with their time.
type revoked map[Revocation]time.Time

// Revoke puts a list of revocations in the place of the one in force.
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

// SetRevocationsUnknown says that the revocations are not known: Verify returns ErrUnavailable for every
// token that it would accept, until there is a list.
func (k *IssuerKeys) SetRevocationsUnknown() { k.revoked.Store(nil) }

// covers reports whether claims are those of a token that is revoked.
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
