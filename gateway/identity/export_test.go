package identity

import "context"

// Verify verifies a token that is presented now.
func (v *Verifier) Verify(ctx context.Context, token string) (*Claims, error) {
	return v.VerifyAt(ctx, token, v.keys.now())
}

// ParseDigest parses a configured digest.
func ParseDigest(s string) (d Digest, err error) {
	err = d.UnmarshalText([]byte(s))
	return d, err
}
