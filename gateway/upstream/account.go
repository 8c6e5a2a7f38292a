package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Account reads the catalog, the resources and the bills of organisations from the platform, and stops and deletes resources. It uses the
// platform key of the organisation. It is safe for concurrent use.
type Account struct {
	// Upstream is the client for the v2 API. Runs is the client for the run interface, or nil if the gateway does not serve it.
	Upstream, Runs *Client
	// Agent is the User-Agent.
	Agent string
	// Lists holds the operations that list resources. Gets maps each kind of resource to the operation that reads one resource.
	Lists []*schema.Operation
	Gets  map[operation.Kind]*schema.Operation
}

// NewAccount returns an Account that sends requests with client. api is the description of the v2 API, and agent is the value of the
// User-Agent header.
func NewAccount(client *Client, api *schema.API, agent string) *Account {
	c := &Account{Upstream: client, Agent: agent, Gets: make(map[operation.Kind]*schema.Operation)}
	for _, row := range operation.All() {
		if row.ListMember != "" && operation.HasOwner(row.Kind) {
			c.Lists = append(c.Lists, api.Operation(row.ID))
		}
		if get := api.Operation(row.ReadOperation); get != nil {
			c.Gets[row.Kind] = get
		}
	}
	return c
}

// Catalog reads the platform's catalog with the platform key of an organisation.
func (c *Account) Catalog(ctx context.Context, org string) (l catalog.Lists, err error) {
	for _, part := range []struct {
		path, member string
		parse        func(doc any) error
	}{
		{"/v2/catalog/gpus", "gpus", func(doc any) (err error) { l.GPUs, err = catalog.ParseGPUs(doc); return err }},
		{"/v2/catalog/cpus", "cpus", func(doc any) (err error) { l.CPUs, err = catalog.ParseCPUs(doc); return err }},
		{"/v2/catalog/datacenters", "dataCenters", func(doc any) (err error) { l.Tiers, err = catalog.ParseTiers(doc); return err }},
	} {
		doc, _, err := c.list(ctx, org, part.path, part.member)
		if err == nil {
			err = part.parse(doc)
		}
		if err != nil {
			return l, fmt.Errorf("reading %s: %w", part.path, err)
		}
	}
	return l, nil
}

// list reads all pages of a list. member is the name of the member that contains the items. If a page cannot be read, list returns an
// error. at is the time of the first page by the platform's clock. Resources that were created later may be missing in the list.
func (c *Account) list(ctx context.Context, org, target, member string) (doc any, at time.Time, err error) {
	pages := PageJoiner{Member: member}
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	for next := target; ; {
		body, answered, err := c.read(ctx, Request{Org: org, Method: http.MethodGet, Target: next})
		if err != nil {
			return nil, at, err
		}
		if at.IsZero() {
			at = answered
		}
		cursor, err := pages.Add(body)
		if err != nil {
			return nil, at, fmt.Errorf("GET %s: %w", target, err)
		}
		if cursor == "" {
			doc, err = strictjson.DecodeLenient(pages.Join(false))
			return doc, at, err
		}
		next = target + separator + "cursor=" + url.QueryEscape(cursor)
	}
}

// ErrForbidden means that the platform responded with 403. errNotFound means that it responded with 404.
var (
	errNotFound  = fmt.Errorf("%w: resource not found", ErrUnreachable)
	ErrForbidden = fmt.Errorf("%w: permission denied for the platform key", ErrUnreachable)
)

// request sends a request and decodes the response, which must have status 200.
func (c *Account) request(ctx context.Context, q Request) (doc any, at time.Time, err error) {
	body, at, err := c.read(ctx, q)
	if err != nil {
		return nil, at, err
	}
	doc, err = strictjson.DecodeLenient(body)
	return doc, at, err
}

// read sends a request and reads the response, which must have status 200 or 204. at is the time of the response by the platform's clock.
func (c *Account) read(ctx context.Context, q Request) (body []byte, at time.Time, err error) {
	q.Header = http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {c.Agent}}
	if q.Body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Upstream.Do(ctx, q) //nolint:bodyclose // ReadAll closes the body
	if err != nil {
		return nil, at, err
	}
	body, err = ReadAll(res.Body, MaxList)
	if err != nil {
		return nil, at, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	switch res.StatusCode {
	case http.StatusOK, http.StatusNoContent:
	case http.StatusNotFound:
		return nil, at, fmt.Errorf("%w: %s %s", errNotFound, q.Method, q.Target)
	case http.StatusForbidden:
		return nil, at, fmt.Errorf("%w: %s %s", ErrForbidden, q.Method, q.Target)
	default:
		return nil, at, fmt.Errorf("%w: %s %s returned status %d", ErrUnreachable, q.Method, q.Target, res.StatusCode)
	}
	return body, date(res.Header), nil
}

// Description reads the API description that the platform serves. It sends no credential.
func (c *Account) Description(ctx context.Context) ([]byte, error) {
	const target = "/v2/openapi.json"
	header := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {c.Agent}}
	res, err := c.Upstream.Do(ctx, Request{Public: true, Method: http.MethodGet, Target: target, Header: header}) //nolint:bodyclose // ReadAll closes the body
	if err != nil {
		return nil, err
	}
	body, err := ReadAll(res.Body, schema.MaxDescription)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: GET %s returned status %d", ErrUnreachable, target, res.StatusCode)
	}
	return body, err
}

// at replaces {id} in a path pattern with an ID.
func at(pattern, id string) string { return strings.Replace(pattern, "{id}", url.PathEscape(id), 1) }

// date returns the time in the Date header of a response. It returns the zero time if the header is missing.
func date(h http.Header) time.Time {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}
