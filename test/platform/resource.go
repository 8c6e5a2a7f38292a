package platform

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// handler answers one operation.
type handler = func(*exchange) (reply, error)

// resource is a kind of record that accounts own, and how it is listed, made, shown, changed
// and deleted.
type resource[T any] struct {
	one, many string // in the names of operations: getPod, listPods
	// path is the path of the list, member the name of its member with the records, and noun the word for one
	// record in error messages.
	path, member, noun string
	table              func(*account) *table[T]
	show               func(x *exchange, v *T) object
	id                 func(v *T) *string

	// query are the parameters of the list. filter reads them, and selects the records that the list
	// shows; nil shows all. The selection is called with the state in hand. scope is the text of the
	// parameters in cursors.
	query  []string
	filter func(x *exchange, p *params) (shown func(v *T) bool, scope string)
	// find is a look at the records that can be shown beside those of the account; nil is none.
	find func(x *exchange, id string) *T
	// paged is set for a list that is paged; others are always whole.
	paged  bool
	create writer[T]
	// unknown is the status of a create with unknown members; zero is 422.
	unknown int
	update  writer[T]                     // nil for records that do not change
	remove  func(x *exchange, v *T) error // deletes, or says why not
	// fixed says why a record is not changed by itself; nil for all that are.
	fixed func(v *T) error
}

// writer reads a body before the state is taken. The function that it returns is called
// with the state in hand: it writes a record, and returns what is left to do when that has
// its id and its place in the table.
type writer[T any] func(x *exchange) (apply func(v *T) (then func(), err error), err error)

// writes is the writer of a body with the members of B.
func writes[T, B any](apply func(x *exchange, v *T, want *B) (func(), error)) writer[T] {
	return func(x *exchange) (func(*T) (func(), error), error) {
		want, err := bodyOf[B](x)
		return func(v *T) (func(), error) { return apply(x, v, want) }, err
	}
}

func (k resource[T]) routes() []route {
	item, query := k.path+"/{id}", k.query
	if k.paged {
		query = pageParameters(query...)
	}
	create := changeRoute(http.MethodPost, k.path, "create"+k.one, k.createOne)
	create.unknown = k.unknown
	routes := []route{getRoute(k.path, "list"+k.many, k.listAll, query...), create, getRoute(item, "get"+k.one, k.getOne)}
	if k.update != nil {
		routes = append(routes, changeRoute(http.MethodPatch, item, "update"+k.one, k.updateOne))
	}
	return append(routes, deleteRoute(item, "delete"+k.one, k.deleteOne))
}

func (k resource[T]) listAll(x *exchange) (reply, error) {
	p, pg, scope, shown := &params{q: x.query}, page{}, "", func(*T) bool { return true }
	if k.filter != nil {
		shown, scope = k.filter(x, p)
	}
	if k.paged {
		pg = x.page(p, maxPage, scope)
	}
	if err := p.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	t, show := k.table(x.acct), func(v *T) object { return k.show(x, v) }
	if k.paged {
		place := func(v *T) uint64 { return t.seqs[*k.id(v)] }
		return ok(paged(pg, k.member, t.order, place, shown, show)), nil
	}
	list := slices.DeleteFunc(slices.Clone(t.order), func(v *T) bool { return !shown(v) })
	return ok(object{k.member, objects(list, show)}), nil
}

func (k resource[T]) createOne(x *exchange) (reply, error) {
	apply, err := k.create(x)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	v := new(T)
	then, err := apply(v)
	if err != nil {
		return reply{}, err
	}
	id := x.s.newIDLocked(func(id string) bool { return k.visible(x, id) != nil })
	*k.id(v) = id
	k.table(x.acct).add(id, v)
	if then != nil {
		then()
	}
	return reply{status: http.StatusCreated, body: k.show(x, v).append(nil)}, nil
}

func (k resource[T]) visible(x *exchange, id string) *T {
	if k.find != nil {
		return k.find(x, id)
	}
	return k.table(x.acct).get(id)
}

func (k resource[T]) getOne(x *exchange) (reply, error) {
	x.lock()
	defer x.unlock()
	v := k.visible(x, x.params[0])
	if v == nil {
		return reply{}, notFound(k.noun)
	}
	return ok(k.show(x, v)), nil
}

func (k resource[T]) updateOne(x *exchange) (reply, error) {
	apply, err := k.update(x)
	if err != nil {
		return reply{}, err
	}
	return k.change(func(x *exchange, v *T) (reply, error) {
		if _, err := apply(v); err != nil {
			return reply{}, err
		}
		k.table(x.acct).touch(x.params[0])
		return ok(k.show(x, v)), nil
	})(x)
}

func (k resource[T]) deleteOne(x *exchange) (reply, error) {
	return k.change(func(x *exchange, v *T) (reply, error) { return noContent(), k.remove(x, v) })(x)
}

// alter has the platform itself change a record of any account, which is brought up to now before.
func (k resource[T]) alter(s *Server, id string, change func(a *account, v *T, now time.Time) error) error {
	s.mu.Lock()
	defer s.release()
	now := s.clock.Now()
	for _, a := range s.accounts {
		if v := k.table(a).get(id); v != nil {
			s.advanceLocked(a, now)
			return change(a, v, now)
		}
	}
	return fmt.Errorf("no %s is called %q", k.noun, id)
}

// change is an operation that changes the record that the path names.
func (k resource[T]) change(f func(x *exchange, v *T) (reply, error)) handler {
	return k.on(func(x *exchange, v *T) (reply, error) {
		if k.fixed != nil {
			if err := k.fixed(v); err != nil {
				return reply{}, err
			}
		}
		return f(x, v)
	})
}

// on is an operation on the record of the account's that the path names.
func (k resource[T]) on(f func(x *exchange, v *T) (reply, error)) handler {
	return locked(func(x *exchange) (reply, error) {
		v, err := k.table(x.acct).own(x.params[0], k.noun)
		if err != nil {
			return reply{}, err
		}
		return f(x, v)
	})
}

// withBody reads the body of an operation before the state is taken.
func withBody[T, B any](on func(f func(x *exchange, v *T) (reply, error)) handler, f func(x *exchange, v *T, want *B) (reply, error)) handler {
	return func(x *exchange) (reply, error) {
		want, err := bodyOf[B](x)
		if err != nil {
			return reply{}, err
		}
		return on(func(x *exchange, v *T) (reply, error) { return f(x, v, want) })(x)
	}
}

// locked is an operation that has the state in hand from its start to its end.
func locked(f handler) handler {
	return func(x *exchange) (reply, error) {
		x.lock()
		defer x.unlock()
		return f(x)
	}
}
