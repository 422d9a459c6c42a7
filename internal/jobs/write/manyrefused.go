package write

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/refusal"
)

// refusalsBorne is how many creations of objects that differ in their number alone may be refused in a row before the
// rest are held back until the next run.
const refusalsBorne = 20

// creations holds back creations of one run if the API server has refused many of the same kind and name, up to the
// number at its end: it would refuse the rest as well, for the same quota or policy, and thousands of requests in vain
// would be made again with each retry.
type creations struct {
	mu   sync.Mutex
	rows map[string]*refusedRow
}

// refusedRow counts the creations that were refused in a row; last is why the last one was.
type refusedRow struct {
	inARow int
	last   error
}

// heldBackError says that an object was not created because others were refused, with the last refusal.
type heldBackError struct{ last error }

func (h *heldBackError) Error() string {
	return fmt.Sprintf("not tried, as many others were refused: %v", h.last)
}

func (h *heldBackError) Unwrap() error { return h.last }

// try creates the object of the write, or returns a heldBackError.
func (c *creations) try(w Write, create func() error) error {
	row := c.row(fmt.Sprint(reflect.TypeOf(w.object), " ", strings.TrimRight(w.object.GetName(), "0123456789")))
	if why := c.last(row); why != nil {
		return &heldBackError{why}
	}
	err := create()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		row.inARow = 0
	case refusal.Is(err):
		row.inARow, row.last = row.inARow+1, err
	}
	return err
}

func (c *creations) row(of string) *refusedRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil {
		c.rows = map[string]*refusedRow{}
	}
	if c.rows[of] == nil {
		c.rows[of] = &refusedRow{}
	}
	return c.rows[of]
}

// last returns why the last one was refused if too many were, or nil.
func (c *creations) last(row *refusedRow) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if row.inARow <= refusalsBorne {
		return nil
	}
	return row.last
}
