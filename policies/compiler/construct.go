package compiler

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
)

// list is an array under construction; it never leaves its frame.
type list struct {
	ast.Value

	term  ast.Term // the term whose value it is
	items []*ast.Term
}

// settled returns a local variable, converted to an array if it was under construction.
func settled(f frame, l int) *ast.Term {
	t := f[l]
	if t == nil {
		return nil
	}
	if made, ok := t.Value.(*list); ok {
		f[l] = ast.ArrayTerm(made.items...)
	}
	return f[l]
}

// construction builds the step that creates a composite value, or returns nil for another statement.
func (b *builder) construction(stmt ir.Stmt) step {
	switch s := stmt.(type) {
	case *ir.MakeArrayStmt:
		to := b.local(s.Target)
		return func(_ *Run, f frame) outcome {
			made := new(list)
			made.items, made.term.Value = make([]*ast.Term, 0, s.Capacity), made
			f[to] = &made.term
			return next
		}
	case *ir.ArrayAppendStmt:
		return b.extend(s)
	case *ir.SetAddStmt:
		v, to := b.operand(s.Value), b.local(s.Set)
		return func(_ *Run, f frame) outcome {
			if f[to] == noItems {
				f[to] = ast.SetTerm(v.of(f))
				return next
			}
			return changed(f[to], func(set ast.Set) { set.Add(v.of(f)) })
		}
	case *ir.MakeObjectStmt:
		to := b.local(s.Target)
		return func(_ *Run, f frame) outcome {
			f[to] = ast.ObjectTerm()
			return next
		}
	case *ir.ObjectInsertStmt:
		k, v, to := b.operand(s.Key), b.operand(s.Value), b.local(s.Object)
		return func(_ *Run, f frame) outcome {
			return changed(f[to], func(o ast.Object) { o.Insert(k.of(f), v.of(f)) })
		}
	case *ir.ObjectInsertOnceStmt:
		return b.insertOnce(s)
	}
	return nil
}

// changed changes a value under construction.
func changed[T ast.Value](t *ast.Term, change func(T)) outcome {
	if t == nil {
		return unsure
	}
	v, ok := t.Value.(T)
	if !ok {
		return unsure
	}
	change(v)
	return next
}

func (b *builder) extend(s *ir.ArrayAppendStmt) step {
	v, to := b.operand(s.Value), b.local(s.Array)
	return func(_ *Run, f frame) outcome {
		return changed(f[to], func(made *list) { made.items = append(made.items, v.of(f)) })
	}
}

func (b *builder) insertOnce(s *ir.ObjectInsertOnceStmt) step {
	k, v, to := b.operand(s.Key), b.operand(s.Value), b.local(s.Object)
	return func(_ *Run, f frame) outcome {
		if have := member(f[to], k.of(f)); have != nil && !same(have, v.of(f)) {
			return unsure // a conflict
		}
		return changed(f[to], func(o ast.Object) { o.Insert(k.of(f), v.of(f)) })
	}
}

// noItems is the initial value of set comprehensions, most of which stay empty.
var noItems = ast.SetTerm()

// makeSet builds an empty set. If the following block fills it, as in a comprehension, the set is created with its first item.
func (b *builder) makeSet(s *ir.MakeSetStmt, behind []ir.Stmt) step {
	to := b.local(s.Target)
	if len(behind) > 0 {
		if _, ok := behind[0].(*ir.BlockStmt); ok {
			return put(to, noItems)
		}
	}
	return func(_ *Run, f frame) outcome {
		f[to] = ast.SetTerm()
		return next
	}
}

// constantSet builds a set of constants, which is created once. n is the number of statements it replaces, or 0 if it does not
// apply.
func (b *builder) constantSet(stmts []ir.Stmt) (s step, n int) {
	first, ok := stmts[0].(*ir.MakeSetStmt)
	if !ok {
		return nil, 0
	}
	set := ast.NewSet()
	for n = 1; n < len(stmts); n++ {
		add, ok := stmts[n].(*ir.SetAddStmt)
		if !ok || add.Set != first.Target {
			break
		}
		item := b.operand(add.Value)
		if item.constant == nil {
			return nil, 0
		}
		set.Add(item.constant)
	}
	if n == 1 {
		return nil, 0
	}
	grows := false
	visit([]*ir.Block{{Stmts: stmts[n:]}}, func(s ir.Stmt) {
		add, ok := s.(*ir.SetAddStmt)
		grows = grows || ok && add.Set == first.Target
	})
	if grows {
		return nil, 0
	}
	set.Slice() // sort now, because sorting is not safe for concurrent use
	return put(b.local(first.Target), ast.NewTerm(set)), n
}
