package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// keySpec holds the values of the flags that describe a new key.
type keySpec struct {
	team, owner, expires, digest string
	roles, addresses             []string
	limits, budget               map[string]string
}

func newKeysCreate() *cobra.Command {
	var c *adminClient
	var s keySpec
	cmd := &cobra.Command{
		Use:   "create [ORG/KEY]",
		Short: "Create a key",
		Long: `Creates a key at a running gateway. The secret is random, is shown once, and is not
stored; gateways store only its SHA-256.

Without ORG/KEY, prints a random key and the line for a configuration file, without
contacting a gateway.`,
		Example: `  tollgate keys create acme/batch --team research --expires 90d --limits minute=60 --budget per_hour=2.50
  tollgate keys create`,
		Args:    named(nil, "ORG/KEY"),
		PreRunE: aboutNoKey,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				key := identity.NewKey()
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "key for the caller:       %s\nline for the configuration: sha256: \"%s\"\n",
					key, identity.DigestOf(key))
				return err
			}
			org, id, err := cutKey(args[0])
			if err != nil {
				return err
			}
			spec, err := s.spec(id, time.Now())
			if err != nil {
				return err
			}
			made, err := c.createKey(cmd.Context(), org, spec)
			if err != nil {
				return err
			}
			return showSecret(cmd, made)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&s.team, "team", "", "team of the caller")
	f.StringSliceVar(&s.roles, "role", nil, "roles of the caller: viewer, operator, admin, lead (default operator)")
	f.StringVar(&s.owner, "owner", "", "person responsible for the key")
	f.StringVar(&s.expires, "expires", "", "expiry as a date (00:00 UTC), an RFC 3339 time, or a duration from now such as 90d (default: never)")
	f.StringSliceVar(&s.addresses, "address", nil, "network from which the key is accepted, such as 10.0.0.0/8 (default: any address)")
	f.StringToStringVar(&s.limits, "limits", nil, "quotas of the key, such as minute=60,day=10000")
	f.StringToStringVar(&s.budget, "budget", nil, "budget of the key, such as per_hour=2.50,gpus=4")
	f.StringVar(&s.digest, "sha256", "", "SHA-256 of an existing secret, to use in place of a new secret")
	c = newAdminClient(cmd)
	complete(cmd, "team", teamNames)
	complete(cmd, "role", cobra.FixedCompletions(identity.Role("").Values(), cobra.ShellCompDirectiveNoFileComp))
	completeArguments(cmd, []string{"ORG/KEY"})
	return cmd
}

// aboutNoKey returns an error if flags describe a key but no key is named: the command then prints only a digest.
func aboutNoKey(cmd *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		return nil
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { err = fmt.Errorf("--%s requires the argument ORG/KEY", f.Name) })
	return err
}

// spec returns the key in the JSON of the operators' API.
func (s *keySpec) spec(id string, now time.Time) (string, error) {
	m := map[string]any{"id": id}
	for name, text := range map[string]string{"team": s.team, "owner": s.owner, "sha256": s.digest} {
		if text != "" {
			m[name] = text
		}
	}
	for name, list := range map[string][]string{"roles": s.roles, "addresses": s.addresses} {
		if len(list) > 0 {
			m[name] = list
		}
	}
	for name, section := range map[string]map[string]string{"limits": s.limits, "budget": s.budget} {
		numbers := make(map[string]any, len(section))
		for member, text := range section {
			if !json.Valid([]byte(text)) {
				return "", usagef("--%s: %s: %q is not a number", name, member, text)
			}
			numbers[member] = json.RawMessage(text)
		}
		if len(section) > 0 {
			m[name] = numbers
		}
	}
	if s.expires != "" {
		end, err := adminapi.ParseTime(s.expires)
		if length, asLength := adminapi.ParseDuration(s.expires); asLength == nil {
			end, err = now.Add(length), nil
		}
		if err != nil {
			return "", usagef("--expires: must be a date, an RFC 3339 time, or a duration such as 90d")
		}
		m["expires"] = end.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(m)
	return string(text), err
}

func (c *adminClient) createKey(ctx context.Context, org, spec string) (*callers.KeyResponse, error) {
	made := new(callers.KeyResponse)
	return made, c.post(ctx, "/admin/keys/create", url.Values{"org": {org}, "spec": {spec}}, made)
}

// showSecret prints the secret of a key. The secret cannot be shown again.
func showSecret(cmd *cobra.Command, made *callers.KeyResponse) error {
	if made.Secret == "" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is accepted\n", made.Key.ID)
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "key for the caller: %s\nThe key is not shown again.\n", made.Secret)
	return err
}

func rotateMade(cmd *cobra.Command, c *adminClient, name string, overlap time.Duration) error {
	org, id, err := cutKey(name)
	if err != nil {
		return err
	}
	made := new(callers.KeyResponse)
	q := url.Values{"org": {org}, "id": {id}, "overlap": {overlap.String()}}
	if err := c.post(cmd.Context(), "/admin/keys/rotate", q, made); err != nil {
		return err
	}
	return showSecret(cmd, made)
}

// keysAtOnce is the page size for listing keys.
const keysAtOnce = "1000"

// listMade lists the keys that match a query, reading all pages.
func listMade(cmd *cobra.Command, c *adminClient, q url.Values, out *output) error {
	var all struct {
		Keys []callers.Key `json:"keys"`
	}
	for q.Set("limit", keysAtOnce); ; {
		var part callers.List
		if err := c.get(cmd.Context(), "/admin/keys", q, &part); err != nil {
			return err
		}
		if all.Keys = append(all.Keys, part.Keys...); part.Next == "" {
			break
		}
		q.Set("cursor", part.Next)
	}
	return out.write(cmd.OutOrStdout(), all, keySheet(all.Keys))
}

func keySheet(list []callers.Key) sheet {
	t := sheet{{"key", "team", "roles", "owner", "from", "created", "by", "expires", "last used", "usd this month", "state"}}
	for _, k := range list {
		t.add(k.ID, k.Team, joined(k.Roles), k.Owner, joined(k.Addresses), k.Created, k.By, k.Expires, k.Used, usd(k.ThisMonth), k.State)
	}
	return t
}

func joined[T any](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}

// span is a flag for a duration of at least 0, such as 90m or 7d.
type span time.Duration

// String implements pflag.Value.
func (s *span) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (s *span) Type() string { return "duration" }

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	d, err := adminapi.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must be at least 0s")
	}
	*s = span(d)
	return err
}
