package graphql

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// user is the account of the caller.
type user struct {
	// keys holds the SSH keys after a write; nil means that they must be read.
	keys []string
}

// myself returns null without a credential: clients interpret null, rather than an error, as bad credentials.
func myself(ctx context.Context, x *exchange, in input) (any, error) {
	if x.anonymous() {
		return nil, nil
	}
	reads := func(name string) bool { return in.Selects(name) }
	if slices.ContainsFunc([]string{
		"pubKey", "currentSpendPerHr", "spendDetails", "clientLifetimeSpend", "dailyCharges", "billing",
		"pods", "endpoints", "endpoint", "podTemplates", "containerRegistryCreds", "networkVolumes",
	}, reads) {
		return &user{}, nil // those reads verify the credential
	}
	if _, err := x.sshKeys(ctx); err != nil && !isStatus(err, http.StatusForbidden) {
		return nil, err
	}
	return &user{}, nil
}

func (x *exchange) sshKeys(ctx context.Context) ([]any, error) {
	return x.List(ctx, legacy.Purpose{Verb: "getSshKeys", Noun: legacy.NounAccount}, "getSshKeys", "keys", nil)
}

func accountTypes() map[string]objectType {
	return map[string]objectType{"User": userFields()}
}

// userID resolves the substitute for the user id of the account.
func userID(_ context.Context, x *exchange, _ any, _ engine.Input) (any, error) { return x.user(), nil }

func userFields() objectType {
	return objectType{
		"id":              userID,
		"authId":          userID,
		"notifyPodsStale": always(false), "notifyPodsGeneral": always(false), "notifyLowBalance": always(false),
		"savingsPlans": always([]any{}), // not available in v2
		"datacenters":  root(dataCenters),

		"clientLifetimeSpend": spendField(lifetimeSpend),
		"dailyCharges":        spendField(dailyCharges),
		"billing": field(func(_ context.Context, _ *exchange, _ *user, in input) (any, error) {
			return billed{in.object("input").text("granularity")}, nil
		}),
		"pubKey": field(func(ctx context.Context, x *exchange, u *user, _ input) (any, error) {
			if u.keys != nil {
				return strings.Join(u.keys, "\n"), nil
			}
			keys, err := x.sshKeys(ctx)
			return strings.Join(translate.Texts(keys), "\n"), err
		}),
		"currentSpendPerHr": spendField(func(ctx context.Context, x *exchange, _ *user, _ input) (any, error) {
			return x.podRates(ctx, func(any) bool { return true })
		}),
		"spendDetails":           get(func(u *user) any { return u }),
		"pods":                   lists((*exchange).AllPods, wrapPods),
		"endpoints":              lists((*exchange).Endpoints, wrapEndpoints),
		"podTemplates":           lists((*exchange).OwnTemplates, wrapTemplates),
		"containerRegistryCreds": lists((*exchange).Registries, records),
		"networkVolumes":         lists((*exchange).Volumes, records),
		"endpoint": field(func(ctx context.Context, x *exchange, _ *user, in input) (any, error) {
			return x.endpointByID(ctx, in.text("id"))
		}),
	}
}

// lists returns a resolver for a list of the account. wrap converts v2 objects to values of the schema.
func lists(read func(x *exchange, ctx context.Context) ([]any, error), wrap func([]any) []any) resolver {
	return field(func(ctx context.Context, x *exchange, _ *user, _ input) (any, error) {
		list, err := read(x, ctx)
		return wrap(list), err
	})
}

// records returns v2 objects unchanged.
func records(list []any) []any {
	out := []any{}
	for _, r := range list {
		if m, ok := r.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// sshKey matches one public key: type, base64, and optionally a comment.
var sshKey = regexp.MustCompile(`^(ssh|ecdsa|sk)-\S+ \S+([ \t].*)?$`)

// updateUserSettings replaces the SSH keys of the account. It keeps their order, because clients append a key by writing the whole text
// back.
func updateUserSettings(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if !a.has("pubKey") {
		return &user{}, nil
	}
	var lines []string
	for line := range strings.SplitSeq(a.text("pubKey"), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !sshKey.MatchString(line) {
			return nil, badInput("pubKey: each line must be a public key of the form <type> <base64> [comment]")
		}
		lines = append(lines, line)
	}
	keys := translate.Unique(lines)
	purpose := legacy.Purpose{Verb: "updateSshKeys", Noun: legacy.NounAccount}
	b, err := x.Change(ctx, purpose, legacy.Call("updateSshKeys", "", map[string]any{"keys": translate.List(keys)}))
	if err != nil {
		return nil, err
	}
	if _, isList := translate.At(b, "keys").([]any); !isList {
		return nil, legacy.UnusableResponse(purpose)
	}
	if list := translate.Texts(b, "keys"); len(list) > 0 {
		keys = list
	}
	return &user{keys: keys}, nil
}

// volumeByID returns the volume from the list, or nil.
func (x *exchange) volumeByID(ctx context.Context, id string) (any, error) {
	if id == "" {
		return nil, nil
	}
	list, err := x.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	return translate.ByID(list, id), nil
}
