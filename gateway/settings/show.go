package settings

import "github.com/tollgate-dev/tollgate/config/strictyaml"

// Show returns the configuration as YAML, or the section of one organisation, nil if there is none. It has neither secrets nor the digests
// of keys and tokens, by which they could be guessed.
func (c *Config) Show(org string) ([]byte, error) {
	if org == "" {
		return strictyaml.Show(c, "sha256")
	}
	if o := c.Org(org); o != nil {
		return strictyaml.Show(o, "sha256")
	}
	return nil, nil
}
