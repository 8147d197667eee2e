package recipes

func (c *composer) rules(wrong *problems) {}
