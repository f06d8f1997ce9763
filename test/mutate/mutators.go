package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// mutants returns every mutant of the package, in the order of the source.
func (p *pkg) mutants() []mutant {
	var all []mutant
	for _, f := range p.files {
		if ast.IsGenerated(f.ast) {
			continue
		}
		w := &walker{pkg: p, file: f, seen: map[string]int{}}
		w.walk()
		all = append(all, w.found...)
	}
	return all
}

// walker collects the mutants of one file.
type walker struct {
	*pkg
	file  *source
	above []ast.Node // from the file down to the node's parent
	found []mutant
	seen  map[string]int
}

func (w *walker) walk() {
	ast.Inspect(w.file.ast, func(n ast.Node) bool {
		if n == nil {
			w.above = w.above[:len(w.above)-1]
			return true
		}
		if !w.visit(n) {
			return false
		}
		w.above = append(w.above, n)
		return true
	})
}

// visit adds the mutants of one node. It returns false where nothing below is worth a mutant.
func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.StructType, *ast.InterfaceType:
		return false
	case *ast.BlockStmt:
		w.statements(n.List)
	case *ast.CaseClause:
		w.statements(n.Body)
		if n.List != nil {
			w.add(n, "", "drop case")
		}
	case *ast.CommClause:
		w.statements(n.Body)
		w.add(n, "", "drop case")
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.ReturnStmt:
		w.results(n)
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.CallExpr:
		return w.call(n)
	case *ast.BasicLit:
		w.literal(n)
	case *ast.Ident:
		w.boolean(n)
	case *ast.SelectorExpr:
		if isUnit(n) && !w.parentIs(token.MUL) {
			w.add(n, "10*"+w.text(n), "duration")
		}
	}
	return true
}

// condition makes an if always true and always false: each is harder to notice than its negation.
func (w *walker) condition(cond ast.Expr) {
	w.add(cond, "("+w.text(cond)+") && false", "never")
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op == token.NEQ && w.text(b.Y) == "nil" && strings.HasSuffix(strings.ToLower(w.text(b.X)), "err") {
		return // an error that is always there is noticed by every test
	}
	w.add(cond, "("+w.text(cond)+") || true", "always")
}

// results turns a returned error into nil, and negates what a predicate returns.
func (w *walker) results(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	switch t := w.info.TypeOf(last); {
	case t == nil || w.text(last) == "nil" || w.text(last) == "true" || w.text(last) == "false":
	case types.Identical(t, types.Universe.Lookup("error").Type()):
		w.add(last, "nil", "no error")
	case len(r.Results) == 1 && isBool(t):
		w.add(last, "!("+w.text(last)+")", "negate")
	}
}

// other is the operator that differs from its key by one value.
var other = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

func (w *walker) binary(b *ast.BinaryExpr) {
	x, y := w.text(b.X), w.text(b.Y)
	switch b.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		w.add(b, x+" "+other[b.Op].String()+" "+y, "boundary")
	case token.EQL, token.NEQ:
		if _, ok := w.parent().(*ast.IfStmt); ok {
			return // the condition's own mutants say the same
		}
		w.add(b, x+map[token.Token]string{token.EQL: " != ", token.NEQ: " == "}[b.Op]+y, "equality")
	case token.LAND, token.LOR:
		w.add(b, x, "operand")
		if left, ok := b.X.(*ast.BinaryExpr); !ok || left.Op != b.Op {
			w.add(b, y, "operand")
		}
	case token.ADD:
		if isString(w.info.TypeOf(b)) {
			return
		}
		w.add(b, x, "term")
		w.add(b, y, "term")
	case token.SUB:
		w.add(b, x, "term")
	case token.MUL:
		if !isUnit(b.X) && !isUnit(b.Y) {
			w.add(b, x, "factor")
			w.add(b, y, "factor")
		}
	case token.QUO:
		w.add(b, x, "factor")
	}
}

// call unwraps f(x) where x would do for the compiler, and leaves out arguments of min, max and Join.
// It returns false for make, whose sizes are hints.
func (w *walker) call(c *ast.CallExpr) bool {
	name := w.text(c.Fun)
	switch {
	case name == "make" || isLog(w.text(c)):
		return false
	case len(c.Args) == 2 && (name == "min" || name == "max" || name == "errors.Join"):
		w.add(c, w.text(c.Args[0]), "argument")
		w.add(c, w.text(c.Args[1]), "argument")
	case len(c.Args) == 1 && !w.info.Types[c.Fun].IsType():
		whole, arg := w.info.TypeOf(c), w.info.TypeOf(c.Args[0])
		if whole != nil && arg != nil && types.AssignableTo(arg, whole) {
			w.add(c, w.text(c.Args[0]), "unwrap")
		}
	}
	return true
}

func (w *walker) literal(l *ast.BasicLit) {
	n, err := strconv.ParseInt(l.Value, 0, 64)
	if l.Kind != token.INT || err != nil || strings.HasPrefix(l.Value, "0o") { // file modes
		return
	}
	if b, ok := w.parent().(*ast.BinaryExpr); ok && b.Op == token.MUL && (isUnit(b.X) || isUnit(b.Y)) {
		w.add(l, strconv.FormatInt(10*n, 10), "duration")
		return
	}
	w.add(l, strconv.FormatInt(n+1, 10), "constant")
}

func (w *walker) boolean(i *ast.Ident) {
	if w.info.Uses[i] == types.Universe.Lookup(i.Name) {
		switch i.Name {
		case "true":
			w.add(i, "false", "constant")
		case "false":
			w.add(i, "true", "constant")
		}
	}
}

// isUnit tells time.Second and its like.
func isUnit(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "time" && strings.Contains(" Nanosecond Microsecond Millisecond Second Minute Hour ", " "+s.Sel.Name+" ")
}

func isBool(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

func isString(t types.Type) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func (w *walker) parent() ast.Node { return w.above[len(w.above)-1] }

func (w *walker) parentIs(op token.Token) bool {
	b, ok := w.parent().(*ast.BinaryExpr)
	return ok && b.Op == op
}

func (w *walker) offset(pos token.Pos) int { return w.fset.Position(pos).Offset }

func (w *walker) text(n ast.Node) string {
	return string(w.file.src[w.offset(n.Pos()):w.offset(n.End())])
}

func (w *walker) add(n ast.Node, text, op string) { w.addRange(n.Pos(), n.End(), text, op) }

func (w *walker) addRange(from, to token.Pos, text, op string) {
	m := mutant{file: w.file, start: w.offset(from), end: w.offset(to), text: text, op: op}
	m.fn, m.everywhere = w.function()
	key := m.key()
	w.seen[key]++
	m.nth = w.seen[key]
	w.found = append(w.found, m)
}

// function names the declared function around the node, as Type.Method. outside is true at package level.
func (w *walker) function() (name string, outside bool) {
	for _, n := range w.above {
		f, ok := n.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name, false
		}
		recv := strings.TrimPrefix(w.text(f.Recv.List[0].Type), "*")
		recv, _, _ = strings.Cut(recv, "[")
		return recv + "." + f.Name.Name, false
	}
	return "", true
}
