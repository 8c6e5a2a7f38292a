package gateway_test

import (
	"context"
	"encoding/json"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	spendstore "github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// Every method of every store returns an error while the server refuses the handshake of each
// connection: through the plain client, alone through the grouped client, and in a batch of two.
// No method panics, returns a short list or reports a write that did not happen.
func TestStoresReportAFailedHandshake(t *testing.T) {
	t.Parallel()
	stores := map[string]func(c redis.Cmdable) any{
		"archive": func(c redis.Cmdable) any {
			return decisions.NewArchive(c, "a:", settings.Archive{Max: 10, For: time.Hour})
		},
		"cas":     func(c redis.Cmdable) any { return store.New[string](c, "c:") },
		"hashes":  func(c redis.Cmdable) any { return &store.Hashes{Client: c, Prefix: "h:", TTL: time.Hour} },
		"intents": func(c redis.Cmdable) any { return spendstore.NewIntents(c, "i:") },
		"journal": func(c redis.Cmdable) any {
			return &store.CappedLog{Client: c, Prefix: "j:", MaxLines: 10, Retention: time.Hour}
		},
		"registry": func(c redis.Cmdable) any { return &store.Registry{Client: c, Key: "r", TTL: time.Hour} },
		"replica": func(c redis.Cmdable) any {
			return store.NewReplica(c, "k:", store.ReplicaConfig[*callers.RevokedToken]{Now: time.Now, Orgs: func() []string { return []string{"all"} }})
		},
		"ledger":    func(c redis.Cmdable) any { return spendstore.New(c, "s:", nil) },
		"tally":     func(c redis.Cmdable) any { return decisions.NewCountStore(c, "t:") },
		"translate": func(c redis.Cmdable) any { return legacy.NewRecords(c, "l:") },
		"usage":     func(c redis.Cmdable) any { return usage.NewStore(c, "u:") },
	}
	for name, open := range stores {
		for _, m := range questions(reflect.TypeOf(open(nil))) {
			t.Run(name+"/"+m, func(t *testing.T) {
				t.Parallel()
				plain := refused(t)
				mustFail(t, "the plain client", ask(open(plain), m))
				mustFail(t, "alone", ask(open(store.NewBatchClient(plain)), m))
				for _, r := range inABatch(t, func(c redis.Cmdable) reply { return ask(open(c), m) }) {
					mustFail(t, "in a batch of two", r)
				}
			})
		}
	}
}

// refused returns a client with a wrong password.
func refused(t *testing.T) redistest.Conn {
	t.Helper()
	server := miniredis.RunT(t)
	server.RequireAuth("right")
	return redistest.As(t, server.Addr(), "", "wrong")
}

// questions names the methods of a store that take a context and return an error.
func questions(store reflect.Type) (names []string) {
	for m := range store.Methods() {
		in, out := m.Type.NumIn(), m.Type.NumOut()
		if in > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() && out > 0 && m.Type.Out(out-1) == reflect.TypeFor[error]() {
			names = append(names, m.Name)
		}
	}
	return names
}

// reply is what a method of a store returned, or its panic.
type reply struct {
	err    error
	panics any
}

func mustFail(t *testing.T, how string, r reply) {
	t.Helper()
	switch {
	case r.panics != nil:
		t.Errorf("%s: panic: %v", how, r.panics)
	case r.err == nil:
		t.Errorf("%s: no error, want WRONGPASS", how)
	case !strings.Contains(r.err.Error(), "WRONGPASS"):
		t.Errorf("%s: %v, want WRONGPASS", how, r.err)
	}
}

// ask calls a method of a store with arguments that are not empty.
func ask(store any, method string) (r reply) {
	defer func() { r.panics = recover() }()
	m := reflect.ValueOf(store).MethodByName(method)
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < m.Type().NumIn(); i++ {
		args = append(args, filled(m.Type().In(i), 6))
	}
	if record := reflect.TypeFor[*callers.RevokedToken](); method == "Swap" && m.Type().In(2) == record {
		args[2] = reflect.Zero(record) // the replica has no records
	}
	call := m.Call
	if m.Type().IsVariadic() {
		call = m.CallSlice
	}
	out := call(args)
	r.err, _ = reflect.TypeAssert[error](out[len(out)-1])
	return r
}

// filled returns a value in which lists have one element and numbers are 1, down to a depth.
func filled(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	if depth == 0 {
		return v
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.Now())
	case t == reflect.TypeFor[json.RawMessage]():
		return reflect.ValueOf(json.RawMessage(`{}`))
	case t == reflect.TypeFor[decisions.Range]():
		return v // the zero Range is everything
	}
	switch t.Kind() { //nolint:exhaustive // values of other kinds stay zero
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.String:
		v.SetString("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem(), depth-1))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem(), depth-1)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(filled(t.Key(), depth-1), filled(t.Elem(), depth-1))
	case reflect.Struct:
		for i := range t.NumField() {
			if v.Field(i).CanSet() {
				v.Field(i).Set(filled(t.Field(i).Type, depth-1))
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for o := range t.Outs() {
				out = append(out, reflect.Zero(o))
			}
			return out
		}))
	}
	return v
}

// occupied holds up the writes of commands about the key "occupied".
type occupied struct{ arrived, proceed chan struct{} }

// DialHook implements redis.Hook.
func (occupied) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (o occupied) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) == 2 {
			if key, ok := args[1].(*string); ok && *key == "occupied" {
				o.arrived <- struct{}{}
				<-o.proceed
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (occupied) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// inABatch makes two calls whose grouped commands share one write: both wait while the two
// writes that a grouped client has under way are held up.
func inABatch(t *testing.T, call func(c redis.Cmdable) reply) []reply {
	t.Helper()
	client, o := refused(t), occupied{make(chan struct{}), make(chan struct{})}
	client.AddHook(o)
	c := store.NewBatchClient(client)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { c.MGet(context.Background(), "occupied") })
		<-o.arrived
	}
	replies := make(chan reply, 2)
	for range 2 {
		all.Go(func() { replies <- call(c) })
	}
	for c.Queued()+len(replies) < 2 {
		runtime.Gosched()
	}
	close(o.proceed)
	all.Wait()
	return []reply{<-replies, <-replies}
}

// A store of counts does not take a failed handshake for a server that withholds its identity,
// and is not called fit then.
func TestAFailedHandshakeIdentifiesNoServer(t *testing.T) {
	s, err := limits.New(refused(t), limits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("check: %v, want WRONGPASS", err)
	}
	if _, err := s.Heartbeat(t.Context(), "a", time.Minute); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("beat: %v, want WRONGPASS", err)
	}
}
