package settings

import "github.com/tollgate-dev/tollgate/config/strictyaml"

// Show returns the configuration, or the section of one organisation, as YAML. It returns nil if the organisation does not exist. Secrets
// and the digests of keys and tokens are omitted, because a digest allows guessing the secret.
func (c *Config) Show(org string) ([]byte, error) {
	if org == "" {
		return strictyaml.Show(c, "sha256")
	}
	if o := c.Org(org); o != nil {
		return strictyaml.Show(o, "sha256")
	}
	return nil, nil
}
