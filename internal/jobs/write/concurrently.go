package write

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// concurrentWrites bounds the concurrent writes for one job.
const concurrentWrites = 50

// ForEach does a write for each of the items, several at once, whether others fail or not. It returns all errors.
func ForEach[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(concurrentWrites)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	_ = group.Wait() // the goroutines keep their errors in errs
	if errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(errs) == 0 {
		return nil
	}
	return writeErrors(errs)
}

// writeErrors are the errors of several writes, at least one.
type writeErrors []error

// errorsShown is how many of the errors the message has. The pods of a large job are often all refused for the same
// reason, and the message is logged with each retry.
const errorsShown = 3

// Error returns a line for each of the first errors, and how many there are besides.
func (w writeErrors) Error() string {
	if more := len(w) - errorsShown; more > 0 {
		return fmt.Sprintf("%v\nand %d more", errors.Join(w[:errorsShown]...), more)
	}
	return errors.Join(w...).Error()
}

// Unwrap returns the errors.
func (w writeErrors) Unwrap() []error { return w }
