package settings

import "github.com/tollgate-dev/tollgate/config/strictyaml"

// Show returns the configuration as YAML or, if org is not empty, the section of an organisation. It returns nil if the organisation does
// not exist. The output contains neither secrets nor the digests of keys and tokens, because a digest makes it possible to verify guesses
// of the secret.
func (c *Config) Show(org string) ([]byte, error) {
	if org == "" {
		return strictyaml.Show(c, "sha256")
	}
	if o := c.Org(org); o != nil {
		return strictyaml.Show(o, "sha256")
	}
	return nil, nil
}
