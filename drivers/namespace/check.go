package namespace

import (
	"croft/drivers"
	"croft/drivers/internal/nodecheck"
	"croft/request"
)

// checkNode refuses what would fail later, or do harm.
func (d *Driver) checkNode(n drivers.Node) error {
	taken, err := d.imageAccounts(n.Image)
	if err != nil {
		return err
	}
	return nodecheck.Node(n, taken)
}

func (d *Driver) checkUsers(users []request.User, image string) error {
	taken, err := d.imageAccounts(image)
	if err != nil {
		return err
	}
	return nodecheck.Users(users, taken)
}
