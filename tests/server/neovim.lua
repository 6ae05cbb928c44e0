-- Drives the server from a real Neovim: nvim --headless -l is newer than what Debian has, so -c luafile.
-- WARPLINT_TEST names the file to open; what is seen goes to WARPLINT_SEEN as JSON, one line a step.

local seen = io.open(vim.env.WARPLINT_SEEN, "w")

local function tell(step, what)
  seen:write(vim.json.encode({ step = step, what = what }) .. "\n")
  seen:flush()
end

local function shown()
  local found = {}
  for _, item in ipairs(vim.diagnostic.get(0)) do
    local line = vim.api.nvim_buf_get_lines(0, item.lnum, item.lnum + 1, true)[1]
    table.insert(found, {
      code = item.code or vim.tbl_get(item, "user_data", "lsp", "code"),
      severity = item.severity,
      line = item.lnum,
      text = line:sub(item.col + 1, item.end_col), -- Neovim counts bytes
      message = item.message,
    })
  end
  return found
end

local function wait_for(step, holds)
  local done = vim.wait(180000, holds, 50)
  tell(step, { done = done, shown = shown() })
  if not done then
    vim.cmd("cquit")
  end
end

-- The button that allows programs to run, and the progress that is shown meanwhile.
vim.lsp.handlers["window/showMessageRequest"] = function(_, result)
  tell("question", result.message)
  return result.actions[1]
end
local report = vim.lsp.handlers["$/progress"]
vim.lsp.handlers["$/progress"] = function(err, result, ctx, config)
  tell("progress", { kind = result.value.kind, title = result.value.title, message = result.value.message })
  return report(err, result, ctx, config)
end

local function act(pattern)
  local chosen = false
  vim.ui.select = function(items, _, choose)
    local titles = {}
    for _, item in ipairs(items) do
      local action = item[2] or item.action
      table.insert(titles, action.title)
      if action.title:find(pattern) and not chosen then
        chosen = true
        choose(item)
      end
    end
    tell("actions", titles)
  end
  vim.lsp.buf.code_action()
  vim.wait(60000, function()
    return chosen
  end, 50)
end

-- What docs/editors.md tells users of this version to write.
vim.cmd("luafile " .. vim.env.WARPLINT_SNIPPET)
vim.cmd("filetype on")
vim.cmd("edit " .. vim.env.WARPLINT_TEST)
vim.bo.fixendofline = false

wait_for("finding", function()
  return #vim.diagnostic.get(0) == 1
end)
local item = vim.diagnostic.get(0)[1]
vim.api.nvim_win_set_cursor(0, { item.lnum + 1, item.col })

act("^Ignore WL106 here")
wait_for("ignored", function()
  return #vim.diagnostic.get(0) == 0
end)
tell("line", vim.api.nvim_buf_get_lines(0, item.lnum, item.lnum + 1, true)[1])
vim.cmd("undo")
wait_for("undone", function()
  return #vim.diagnostic.get(0) == 1
end)

act("^Fix WL106")
wait_for("fixed", function()
  return #vim.diagnostic.get(0) == 0
end)
tell("text", table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"))
vim.cmd("undo")
wait_for("undone", function()
  return #vim.diagnostic.get(0) == 1
end)

act("^Prove WL106")
wait_for("proved", function()
  local now = vim.diagnostic.get(0)
  return #now == 1 and now[1].severity == vim.diagnostic.severity.ERROR
end)

seen:close()
vim.cmd("qall!")
