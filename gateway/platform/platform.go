package platform

import (
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// New returns the client of the platform's REST API.
func New(c *settings.Config) (*upstream.Client, error) {
	return upstream.New(upstreamOf(c), credentialsOf(c))
}

// upstreamOf returns the client configuration for the REST API.
func upstreamOf(c *settings.Config) upstream.Config {
	return upstream.Config{
		BaseURL: c.Platform.BaseURL, Timeout: c.Timeouts.Response, ConnectTimeout: c.Timeouts.Connect, MaxIdle: 256,
		Connections: c.Platform.Connections, Proxy: c.Platform.Proxy.Reveal(),
	}
}

// runsOf returns the client configuration for the run interface.
func runsOf(c *settings.Config) upstream.Config {
	u := upstreamOf(c)
	u.BaseURL, u.Timeout, u.MaxIdle = c.Platform.RunURL, c.Timeouts.Run, 512
	return u
}

// balancedOf returns the client configuration for load-balanced endpoints.
func balancedOf(c *settings.Config) upstream.Config {
	r := runsOf(c)
	r.BaseURL = strings.Replace(c.Platform.BalancedURL, "{id}", "id", 1)
	r.Duplex = true // a worker may respond before it has read the whole request
	return r
}

// credentialsOf returns the platform key of each organisation.
func credentialsOf(c *settings.Config) map[string]upstream.Credential {
	m := make(map[string]upstream.Credential, len(c.Orgs))
	for _, o := range c.Orgs {
		if o.Credential.Resolved() {
			m[o.ID] = upstream.NewCredential(o.Credential.Reveal())
		}
	}
	return m
}

// runCredentials returns the platform key of each organisation for the run interface and load-balanced endpoints.
func runCredentials(c *settings.Config) map[string]upstream.Credential {
	m := credentialsOf(c)
	for _, o := range c.Orgs {
		if o.RunCredential.IsZero() {
			continue
		}
		delete(m, o.ID) // the organisation does not use the run interface
		if o.RunCredential.Resolved() {
			m[o.ID] = upstream.NewCredential(o.RunCredential.Reveal())
		}
	}
	return m
}
