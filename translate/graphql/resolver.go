package graphql

import (
	"context"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// resolver returns the value of one field and reaches v2 through x. Resolvers run for selected fields only, so the
// selection determines the v2 reads.
type resolver = engine.Resolver[*exchange]

// objectType maps the fields of one schema type to their resolvers.
type objectType = engine.Object[*exchange]

// input holds the arguments and the selection of a field.
type input struct {
	args
	engine.Input
}

// field adapts a resolver that may call v2.
func field[T any](f func(ctx context.Context, x *exchange, source T, in input) (any, error)) resolver {
	return func(ctx context.Context, x *exchange, source any, in engine.Input) (any, error) {
		s, ok := source.(T)
		if !ok {
			return nil, internal(fmt.Errorf("source is %T", source))
		}
		return f(ctx, x, s, input{in.Args, in})
	}
}

// root adapts the resolver of a root field, which has no source.
func root(f func(ctx context.Context, x *exchange, in input) (any, error)) resolver {
	return func(ctx context.Context, x *exchange, _ any, in engine.Input) (any, error) {
		return f(ctx, x, input{in.Args, in})
	}
}

// byID adapts the resolver of a root field that takes one id, from an argument or a member of the input.
func byID(path string, f func(ctx context.Context, x *exchange, id string) (any, error)) resolver {
	return root(func(ctx context.Context, x *exchange, in input) (any, error) {
		a, name := in.args, path
		if member, inside := strings.CutPrefix(path, "input."); inside {
			a, name = in.object("input"), member
		}
		if err := required(a, name); err != nil {
			return nil, err
		}
		return f(ctx, x, a.text(name))
	})
}

// deletes adapts a function that deletes a resource. The field's value is done.
func deletes(path string, done any, remove func(s *legacy.Session, ctx context.Context, id string) error) resolver {
	return byID(path, func(ctx context.Context, x *exchange, id string) (any, error) {
		return done, remove(x.Session, ctx, id)
	})
}

// get adapts a function that reads a value from the source.
func get[T any](f func(source T) any) resolver {
	return field(func(_ context.Context, _ *exchange, s T, _ input) (any, error) { return f(s), nil })
}

// text, whole and float adapt functions that read a leaf from the source, without an allocation.
func text[T any](f func(source T) string) resolver {
	return field(func(_ context.Context, _ *exchange, s T, in input) (any, error) { return in.Text(f(s)), nil })
}

func whole[T any](f func(source T) int64) resolver {
	return field(func(_ context.Context, _ *exchange, s T, in input) (any, error) { return in.Whole(f(s)), nil })
}

func float[T any](f func(source T) float64) resolver {
	return field(func(_ context.Context, _ *exchange, s T, in input) (any, error) { return in.Float(f(s)), nil })
}

// textOrNull is like text, with null for "".
func textOrNull[T any](f func(source T) string) resolver {
	return field(func(_ context.Context, _ *exchange, s T, in input) (any, error) {
		if value := f(s); value != "" {
			return in.Text(value), nil
		}
		return nil, nil
	})
}

// texts adapts a function that appends the strings of a list.
func texts[T any](f func(list []string, source T) []string) resolver {
	return field(func(_ context.Context, _ *exchange, s T, in input) (any, error) {
		return in.Texts(f(in.Buffer(), s)), nil
	})
}

// always returns a resolver for a constant: a value that v2 does not provide, or that is always the same.
func always(v any) resolver {
	return func(context.Context, *exchange, any, engine.Input) (any, error) { return v, nil }
}

// args holds coerced input by name; see [engine.Input]. It does not distinguish absent from null, because legacy clients
// do not.
type args map[string]any

func (a args) has(name string) bool { _, ok := a[name]; return ok }

func (a args) text(name string) string { s, _ := a[name].(string); return s }

// int returns the value and whether it is present.
func (a args) int(name string) (int64, bool) { n, ok := a[name].(int64); return n, ok }

func (a args) float(name string) (float64, bool) { f, ok := a[name].(float64); return f, ok }

func (a args) bool(name string) (value, given bool) {
	value, given = a[name].(bool)
	return value, given
}

func (a args) object(name string) args { o, _ := a[name].(map[string]any); return o }

func (a args) list(name string) []any { l, _ := a[name].([]any); return l }

// optional returns an argument as an Optional.
func optional[T any](a args, name string) legacy.Optional[T] { return legacy.OptionalOf[T](a, name) }

// nonZero treats a zero value as absent, because clients send it as a default.
func nonZero[T comparable](w legacy.Optional[T]) legacy.Optional[T] {
	if value, given := w.Get(); given && value != *new(T) {
		return w
	}
	return legacy.Optional[T]{}
}

// startNames lists the arguments for services that a pod starts in addition to its command.
var startNames = map[string]string{"startSsh": "startSsh", "startJupyter": "startJupyter"}

// plain collects arguments that v2 accepts unchanged, under their v2 names. It treats "" as absent.
func plain(a args, names ...map[string]string) legacy.PassThrough {
	p := legacy.PassThrough{}
	for _, table := range names {
		for name, member := range table {
			if value := a[name]; value != nil && value != "" {
				p.Set(member, value)
			}
		}
	}
	return p
}

// texts returns the strings of a list without empty ones.
func (a args) texts(name string) []string {
	list := a.list(name)
	if len(list) == 0 {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok && s != "" {
			out = append(out, s)
		}
	}
	return out
}
